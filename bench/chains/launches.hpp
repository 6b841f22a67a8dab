// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/chrome_trace.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What the launches of single NFs move, and how long their parts take.
namespace catena::bench {

struct NfBytes {
  std::string nf;
  double to_device = 0;  ///< a packet of its launches
  double to_host = 0;
};

/// Parts of a launch in their order, by the names of their spans: on the host, on the device, on the host.
enum Phase : std::uint8_t { kFill, kSubmit, kToDevice, kKernel, kToHost, kDeliver };
inline constexpr std::array<std::string_view, 6> kPhases{"fill", "submit", "to device", "kernel", "to host", "deliver"};
using PhaseTimes = std::array<double, kPhases.size()>;

/// The launches of one NF that a trace has whole, without those of the run's first quarter.
struct LaunchTimes {
  std::string nf;
  std::uint64_t launches = 0;
  std::uint64_t packets = 0;  ///< of all of them
  PhaseTimes median_us{};     ///< of a launch
  PhaseTimes total_us{};      ///< of all of them
};

/// Of each stage that has such launches. Pure.
std::vector<LaunchTimes> launch_times(std::span<const runtime::StageTrace> stages);

}  // namespace catena::bench
