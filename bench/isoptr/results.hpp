// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/chains/busy.hpp"
#include "bench/chains/sample_sink.hpp"
#include "bench/common/spread.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace catena::bench {

/// What a cell is measured for.
enum class IsoPtrPart {
  kKernels,  ///< kernels by themselves
  kChains,   ///< S_a to S_d as fast as they can
};
std::string_view to_string(IsoPtrPart part);

/// A run with checks and the one without them right after it.
struct IsoPtrRepeat {
  double checked_ns = 0;    ///< a packet
  double unchecked_ns = 0;  ///< the same
};

/// One measurement and its repeats.
struct IsoPtrCell {
  IsoPtrPart part = IsoPtrPart::kKernels;
  std::string name;               ///< of the kernel (see kernel_chains()) or of the chain
  std::uint32_t wire_bytes = 64;  ///< of a frame with FCS; where ESP is decrypted, of what is inside
  std::uint32_t packets = 0;      ///< of a launch; 0 for a chain, which decides itself
  std::vector<IsoPtrRepeat> repeats;
  SampleCheck checked;          ///< what comes out with checks, against the CPU
  SampleCheck unchecked;        ///< and without
  double us_per_launch = 0;     ///< of a kernel with checks
  std::vector<BusyShare> busy;  ///< of a chain with checks, in a run of its own
  std::string error;            ///< why it could not be measured
};

Spread over(IsoPtrCell const& cell, double IsoPtrRepeat::*value);
/// Time with checks divided by time without, less 1, in percent: of each repeat, and over them.
Spread overhead_percent(IsoPtrCell const& cell);

struct IsoPtrResults {
  std::string command;
  std::string commit;   ///< of the source tree, or "unknown"
  std::string machine;  ///< processor, cores, kernel
  std::string device;
  std::string costs_from;  ///< the cost profile that plans were made by
  double seconds = 0;      ///< of a chain's run
  double kernel_seconds = 0;
  std::string tuning;
  double us_per_empty_launch = 0;  ///< of a kernel that has one packet
  std::vector<IsoPtrCell> cells;
  bool abandoned = false;  ///< a device never answered: the process must not tear it down

  std::uint64_t samples_compared() const;
  std::uint64_t samples_different() const;
  std::uint64_t failed_cells() const;
};

/// What keeps the cell from being faster, in a few words: the kernel, launches that are too short, or of a chain what
/// was busy for the largest part of the time.
std::string limit_of(IsoPtrResults const& results, IsoPtrCell const& cell);

/// Everything as one JSON object.
std::string to_json(IsoPtrResults const& results);

}  // namespace catena::bench
