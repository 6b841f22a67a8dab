// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"

#include <string>

namespace catena::runtime::testing {

/// A chain without NFs; a test that calls it fails where it is none.
chain::ChainConfig config_of(std::string const& rx, std::string const& tx);

}  // namespace catena::runtime::testing
