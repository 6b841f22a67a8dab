// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/hostcopy/accelerator.hpp"
#include "stack/copy/part_clock.hpp"
#include "stack/copy/tx_stage.hpp"
#include "stack/session/session_server.hpp"

namespace catena::stack {

/// What a stack's process did since its start. Sent as bytes between two programs of one build.
struct StackReport {
  SessionCounters sessions;
  TxCounters tx;
  hostcopy::AcceleratorCounters copies;
  std::array<std::uint64_t, kPartNames.size()> cycles;  ///< by Part
  std::uint32_t connections;
  std::uint32_t applications;
  std::uint32_t buffers_in_use;
};

}  // namespace catena::stack
