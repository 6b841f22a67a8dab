// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/cost_profile.hpp"
#include "plan/planner.hpp"

#include <cstdint>
#include <optional>

namespace catena::chain {

/// How a chain synchronizes host and device: `transfers`, with measured costs.
struct SyncOptions {
  plan::Mode mode = plan::Mode::kAdaptive;
  bool pushdown = true;
  CostProfile profile = CostProfile::built_in();
  plan::MethodSet methods = plan::kAllMethods;    ///< allowed in plans; kStaged always is
  std::optional<plan::Plan> plan = std::nullopt;  ///< replaces the planner's; must fit the chain
  /// Measured average packet size; nullopt: as profile_of().
  std::optional<std::uint32_t> packet_bytes = std::nullopt;
};

}  // namespace catena::chain
