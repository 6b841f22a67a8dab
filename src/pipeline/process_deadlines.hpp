// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

namespace catena::runtime {

/// When an NF process counts as hung: with a unit for too long, or too long without an end after its last unit. One
/// thread.
class ProcessDeadlines {
 public:
  using Clock = std::chrono::steady_clock;
  /// From the last packet to the end of a process with continuous write requests, for a table of flows, for example.
  static constexpr std::chrono::minutes kLongestEnd{10};
  /// Added to the limit of an unresponsive device, for the NF's work on the CPU meanwhile.
  static constexpr std::chrono::seconds kGrace{5};

  /// `limit`: maximum time of the NFs for a unit, without the grace.
  explicit ProcessDeadlines(std::chrono::milliseconds limit) : limit_(limit + kGrace) {}

  /// Whether a unit sent at `sent` should have returned by `now`.
  bool is_unit_late(Clock::time_point sent, Clock::time_point now) const { return now - sent > limit_; }
  /// The process got its last unit.
  void start_end(Clock::time_point now) { closed_at_ = now; }
  /// Whether a process that last requested a write at `wrote` should have ended by `now`. After start_end().
  bool is_end_late(Clock::time_point wrote, Clock::time_point now) const {
    return now - std::max(closed_at_, wrote) > limit_ || now - closed_at_ > kLongestEnd;
  }

 private:
  std::chrono::milliseconds limit_;
  Clock::time_point closed_at_;
};

}  // namespace catena::runtime
