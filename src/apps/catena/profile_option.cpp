// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/profile_option.hpp"

#include <catena/core/text.hpp>

#include <utility>

namespace catena::cli {

Result<chain::CostProfile> profile_for(chain::ChainConfig const& config) {
  chain::FileName const& profile = config.run.transfers.profile;
  return profile.path.empty() ? chain::ProfileStore::from_environment().find(config.devices.front())
                              : chain::load_profile(profile.path);
}

Result<chain::ChainLayout> layout_for(chain::ChainConfig const& spec, chain::RunOptions const& options,
                                      nf::Registry const& registry, std::optional<chain::Placement>& placement) {
  chain::Placement evidence;
  Result<chain::ChainLayout> layout = chain::resolve(spec, chain::this_machine(spec), options, registry, &evidence);
  if (layout.ok() && chain::has_auto(spec)) {
    placement = std::move(evidence);
  }
  return layout;
}

std::string of_device(chain::CostProfile const& profile) {
  return profile.measured.empty() ? std::string() : concat(" (", profile.device, ", ", profile.backend, ")");
}

}  // namespace catena::cli
