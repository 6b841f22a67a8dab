// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/registry.hpp"

#include <string>

namespace catena::chain {

/// The JSON Schema (draft 2020-12) of a chain file, for editors. It is built from the tables used to check a file and
/// from the keys of the NFs in `registry`. It accepts slightly more than `catena check`: unique names and the contents
/// of named files cannot be expressed.
std::string chain_schema(nf::Registry const& registry);

}  // namespace catena::chain
