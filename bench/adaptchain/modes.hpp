// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/chains/chains.hpp"
#include "plan/planner.hpp"

#include <array>
#include <string_view>

namespace catena::bench {

/// Names of modes. Modes not named "staged" may use every transfer method.
inline constexpr const char* kCopyStaged = "copy, staged";
inline constexpr const char* kCopy = "copy";
inline constexpr const char* kSharedStaged = "shared, staged";
inline constexpr const char* kShared = "shared";
inline constexpr const char* kAdaptiveStaged = "adaptive, staged";
inline constexpr const char* kAdaptive = "adaptive";
inline constexpr const char* kWithoutPushdown = "adaptive without pushdown";
inline constexpr const char* kCpu = "cpu";
inline constexpr const char* kAuto = "auto";

/// A measured configuration of a chain. Compared with "copy, staged" (G-NET), "adaptive, staged" shows the effect of
/// the plan, "copy" the effect of the transfer methods, and "adaptive" both. "shared" represents Gaviss. "cpu" places
/// every NF on the CPU, "auto" places NFs by the model.
struct SyncMode {
  const char* name;
  plan::Mode mode;
  bool pushdown;
  plan::MethodSet methods;
  Placed placed = Placed::kAsListed;
};
inline constexpr plan::MethodSet kStagedAlone = plan::method_bit(TransferMethod::kStaged);
inline constexpr std::array<SyncMode, 9> kModes{
    {{kCopyStaged, plan::Mode::kCopy, true, kStagedAlone},
     {kCopy, plan::Mode::kCopy, true, plan::kAllMethods},
     {kSharedStaged, plan::Mode::kShared, true, kStagedAlone},
     {kShared, plan::Mode::kShared, true, plan::kAllMethods},
     {kAdaptiveStaged, plan::Mode::kAdaptive, true, kStagedAlone},
     {kAdaptive, plan::Mode::kAdaptive, true, plan::kAllMethods},
     {kWithoutPushdown, plan::Mode::kAdaptive, false, plan::kAllMethods},
     {kCpu, plan::Mode::kAdaptive, true, plan::kAllMethods, Placed::kCpu},
     {kAuto, plan::Mode::kAdaptive, true, plan::kAllMethods, Placed::kAuto}}};

/// Null if no mode has this name.
inline SyncMode const* find_mode(std::string_view name) {
  for (SyncMode const& mode : kModes) {
    if (name == mode.name) {
      return &mode;
    }
  }
  return nullptr;
}

}  // namespace catena::bench
