// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/hostcopy/accelerator.hpp"
#include "stack/session/session_server.hpp"
#include "stack/tx/part_clock.hpp"
#include "stack/tx/tx_stage.hpp"

namespace catena::stack {

/// The counters of a stack's process since its start. Sent as bytes between two programs of one build.
struct StackReport {
  SessionCounters sessions;
  TxCounters tx;
  hostcopy::AcceleratorCounters copies;
  std::array<std::uint64_t, kPartNames.size()> cycles;  ///< by Part
  std::uint64_t elapsed;                                ///< cycles; at least the sum of `cycles`
  std::uint32_t connections;
  std::uint32_t applications;
  std::uint32_t buffers_in_use;
};

}  // namespace catena::stack
