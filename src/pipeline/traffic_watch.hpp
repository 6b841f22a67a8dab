// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace catena::runtime {

/// Reports packets of another size than NFs were placed for. Belongs to one thread at a time.
class TrafficWatch {
 public:
  /// Interval of look() calls.
  static constexpr std::chrono::seconds kPeriod{5};
  /// Of a period; with fewer, it reports nothing.
  static constexpr std::uint64_t kMinPackets = 10'000;
  /// Sizes with a larger relative difference count as different.
  static constexpr double kOther = 0.1;
  /// Number of look() calls without a report after a placement by one, so that fluctuating traffic does not move NFs
  /// each time.
  static constexpr int kRest = 12;

  /// `placed_for`: bytes per packet, on average. `was_found`: reported by another watch.
  TrafficWatch(std::uint32_t placed_for, bool was_found) : placed_for_(placed_for), rest_(was_found ? kRest : 0) {}

  /// `packets` and `bytes`: totals since the start. Returns the average size found twice in a row, if it differs from
  /// the placement's; reported once.
  std::optional<std::uint32_t> look(std::uint64_t packets, std::uint64_t bytes);

 private:
  double placed_for_;
  int rest_;
  std::uint64_t packets_ = 0;
  std::uint64_t bytes_ = 0;
  double found_ = 0;  ///< by the previous call; 0: nothing new
};

}  // namespace catena::runtime
