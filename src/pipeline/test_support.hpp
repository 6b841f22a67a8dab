// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"

#include <string>

namespace catena::runtime::testing {

/// A chain without NFs; the calling test fails if it is invalid.
chain::ChainConfig config_of(std::string const& rx, std::string const& tx);

}  // namespace catena::runtime::testing
