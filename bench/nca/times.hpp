// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/time_rows.hpp"

#include <nca/nca.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// What the times of buffers say. Pure.
namespace catena::bench {

/// Shares of a time.
struct Overlap {
  double copy = 0;    ///< in which a copy runs
  double kernel = 0;  ///< in which a kernel runs
  double both = 0;
  /// Of the time in which a copy runs, the share in which a kernel does too; 0 without copies.
  double hidden() const { return copy > 0 ? both / copy : 0; }
  double kernel_hidden() const { return kernel > 0 ? both / kernel : 0; }
};

/// Over [from_ns, to_ns), which is not empty. Buffers may be in any order. Where one waits for another's copy or
/// kernel, its own counts as running: that changes nothing as long as the device has them wait for their own kind.
Overlap overlap_of(std::span<const nca_times> buffers, std::int64_t from_ns, std::int64_t to_ns);

/// What the boxes of nca_timeline() are, by TimeBox::kind.
std::vector<std::string> nca_timeline_kinds();

/// About eight buffers around the time `middle_ns`: their rows, one for each buffer in flight at a time, with boxes in
/// microseconds; and how many microseconds they take. No buffers: no rows.
std::pair<std::vector<TimeRow>, double> nca_timeline(std::span<const nca_times> buffers, std::int64_t middle_ns);

}  // namespace catena::bench
