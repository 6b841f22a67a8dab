// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/time_rows.hpp"

#include <nca/nca.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Analysis of buffer times. Pure.
namespace catena::bench {

/// Shares of an interval.
struct Overlap {
  double copy = 0;    ///< a copy runs
  double kernel = 0;  ///< a kernel runs
  double both = 0;
  /// Share of the copy time during which a kernel also runs; 0 without copies.
  double hidden() const { return copy > 0 ? both / copy : 0; }
  double kernel_hidden() const { return kernel > 0 ? both / kernel : 0; }
};

/// Over the non-empty interval [from_ns, to_ns). Buffers may be in any order. A buffer waiting for another buffer's
/// copy or kernel counts as running its own. This changes no result as long as the device makes buffers wait only for
/// operations of their own kind.
Overlap overlap_of(std::span<const nca_times> buffers, std::int64_t from_ns, std::int64_t to_ns);

/// Names of the box kinds of nca_timeline(), indexed by TimeBox::kind.
std::vector<std::string> nca_timeline_kinds();

/// Rows of about eight buffers around `middle_ns`, one row per buffer in flight at a time, with boxes in microseconds;
/// and the total length in microseconds. No rows if `buffers` is empty.
std::pair<std::vector<TimeRow>, double> nca_timeline(std::span<const nca_times> buffers, std::int64_t middle_ns);

}  // namespace catena::bench
