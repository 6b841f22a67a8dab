// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/sharing/scheduler.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace catena::runtime {

/// An NF that shares a GPU with others.
struct SharingNf {
  std::string name;
  /// Cost of the NF for packets of `packet_bytes`; nullopt: not measured. Any thread.
  std::function<std::optional<share::NfCost>(std::uint32_t packet_bytes)> cost;
  double latency_limit_ns = 1e6;
  std::uint32_t group_size = 64;    ///< of its kernel
  std::uint32_t stages = 1;         ///< number sharing its partition: one per shard
  std::uint32_t least_packets = 1;  ///< minimum capacity of a launch, for any partition: a unit
  std::uint32_t max_packets = UINT32_MAX;
  bool is_elsewhere = false;  ///< in a separate process, which keeps to the partition itself
  /// Number of waiting packets that shows its partition to be too small: so many never wait just for the next launch.
  std::uint64_t backlog_packets = UINT64_MAX;
};

/// Of an unmeasured NF: its launches have as many packets as a part has room for in a first step.
inline constexpr share::NfCost kUnknownCost{.kernel = {1, 0}, .transfer = {}};

}  // namespace catena::runtime
