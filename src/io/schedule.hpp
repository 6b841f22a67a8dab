// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace catena::io {

/// An even stream's timetable: packet n is due n / rate after the first one. What is taken late keeps the time at which
/// it was due, and nothing is left out after a pause, however long: so the load does not shrink when the chain is held
/// up, and the times that packets waited in front of it count (open loop).
class Schedule {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Schedule(double per_second) : per_second_(per_second) {}

  /// Packets that are due at `now` and have not been taken. The first packet is due at the first call's `now`, which no
  /// later one precedes.
  std::uint64_t due(Clock::time_point now) {
    if (!has_begun_) {
      has_begun_ = true;
      start_ = now;
    }
    constexpr double kMost = 1e18;  // what a double and 64 bits hold
    const std::chrono::duration<double> passed = now - start_;
    return static_cast<std::uint64_t>(std::min(kMost, per_second_ * passed.count())) + 1 - taken_;
  }
  /// Uses up the next `count` packets, of those that are due.
  void take(std::uint64_t count) { taken_ += count; }
  /// When packet `number` is due, from 0; ns of the clock. due() has been called.
  std::uint64_t due_ns(std::uint64_t number) const {
    constexpr double kNsPerSecond = 1e9;
    const std::chrono::nanoseconds start = start_.time_since_epoch();
    return static_cast<std::uint64_t>(start.count()) +
           static_cast<std::uint64_t>(static_cast<double>(number) / per_second_ * kNsPerSecond);
  }
  std::uint64_t taken() const { return taken_; }

 private:
  double per_second_;
  bool has_begun_ = false;
  Clock::time_point start_;
  std::uint64_t taken_ = 0;
};

}  // namespace catena::io
