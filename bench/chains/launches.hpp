// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/chrome_trace.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Bytes transferred by the launches of single NFs, and the durations of their phases.
namespace catena::bench {

struct NfBytes {
  std::string nf;
  double to_device = 0;  ///< per packet of its launches
  double to_host = 0;
};

/// Phases of a launch in order, by span name: on the host, on the device, on the host.
enum Phase : std::uint8_t { kFill, kSubmit, kToDevice, kKernel, kToHost, kDeliver };
inline constexpr std::array<std::string_view, 6> kPhases{"fill", "submit", "to device", "kernel", "to host", "deliver"};
using PhaseTimes = std::array<double, kPhases.size()>;

/// The launches of one NF that are complete in a trace, without the first quarter of the run.
struct LaunchTimes {
  std::string nf;
  std::uint64_t launches = 0;
  std::uint64_t packets = 0;  ///< of all launches
  PhaseTimes median_us{};     ///< per launch
  PhaseTimes total_us{};      ///< of all launches
};

/// One entry per stage with complete launches. Pure.
std::vector<LaunchTimes> launch_times(std::span<const runtime::StageTrace> stages);

}  // namespace catena::bench
