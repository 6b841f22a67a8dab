// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/cost_profile.hpp"
#include "cli/commands.hpp"

namespace catena::cli {

/// The costs for a plan of a chain that is not run: those of `--profile`, else of the device that a run would open,
/// else the built-in ones. Errors: as device::parse_preference() and chain::load_profile().
Result<chain::CostProfile> profile_for(RunArguments const& arguments, chain::ChainConfig const& config);

/// " (NVIDIA H200, cuda)" after what describe() says of a measured profile; nothing after that of the built-in one.
std::string of_device(chain::CostProfile const& profile);

}  // namespace catena::cli
