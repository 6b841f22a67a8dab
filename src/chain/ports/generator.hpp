// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "io/source.hpp"

namespace catena::chain {

/// rx as a generator. Its settings are an io::GeneratorConfig.
PortConfig generated(io::GeneratorConfig const& traffic);

}  // namespace catena::chain
