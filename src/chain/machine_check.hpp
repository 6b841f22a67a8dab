// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"

#include <string>
#include <vector>

namespace catena::chain {

/// Devices of rx and tx that this machine does not have now, as messages of io::find_device() with the position of the
/// port. Opens nothing. Any thread.
std::vector<std::string> missing_devices(ChainConfig const& config);

}  // namespace catena::chain
