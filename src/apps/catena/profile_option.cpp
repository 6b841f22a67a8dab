// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/profile_option.hpp"

#include <catena/core/text.hpp>

namespace catena::cli {

Result<chain::CostProfile> profile_for(chain::ChainConfig const& config) {
  chain::FileName const& profile = config.run.transfers.profile;
  return profile.path.empty() ? chain::ProfileStore::from_environment().find(config.devices.front())
                              : chain::load_profile(profile.path);
}

Result<std::optional<chain::Placement>> place_for(chain::ChainConfig& config, chain::RunOptions const& options,
                                                  chain::SyncOptions const& sync, nf::Registry const& registry) {
  if (!chain::has_auto(config)) {
    return std::nullopt;
  }
  CATENA_ASSIGN_OR_RETURN(
      chain::Placement placement,
      chain::place(config, sync, chain::place_of(options, chain::device_for(config.devices.front())), registry));
  return placement;
}

std::string of_device(chain::CostProfile const& profile) {
  return profile.measured.empty() ? std::string() : concat(" (", profile.device, ", ", profile.backend, ")");
}

}  // namespace catena::cli
