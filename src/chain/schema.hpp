// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/registry.hpp"

#include <string>

namespace catena::chain {

/// The JSON Schema (draft 2020-12) of a chain file, made of the tables that check it and of what the NFs of `registry`
/// say of their keys; for editors. It is a little more tolerant than `catena check`: it cannot say that names differ,
/// or what is in the files that a chain names.
std::string chain_schema(nf::Registry const& registry);

}  // namespace catena::chain
