// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/catena/commands.hpp"
#include "chain/chain_file.hpp"
#include "chain/cost_profile.hpp"
#include "chain/layout.hpp"
#include "chain/placing.hpp"
#include "nf/registry.hpp"

#include <optional>
#include <string>

namespace catena::cli {

/// The costs for planning a chain without running it: from the profile that it names, else of the device that a run
/// would open, else built-in. Errors: as chain::load_profile().
Result<chain::CostProfile> profile_for(chain::ChainConfig const& config);

/// The layout of a run with these options, for the device of the run. Opens no device. `placement` is set if an NF is
/// `on: auto`. Errors: as chain::resolve().
Result<chain::ChainLayout> layout_for(chain::ChainConfig const& spec, chain::RunOptions const& options,
                                      nf::Registry const& registry, std::optional<chain::Placement>& placement);

/// " (NVIDIA H200, cuda)", to append to describe() of a measured profile; empty for the built-in one.
std::string of_device(chain::CostProfile const& profile);

}  // namespace catena::cli
