// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace catena::io {

/// The schedule of an even stream: packet n is due n / rate after the first one. A packet taken late keeps its due
/// time, and no packet is skipped after a pause of any length. So the load does not shrink while the chain is stalled,
/// and waiting times before the chain count (open loop).
class Schedule {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Schedule(double per_second) : per_second_(per_second) {}

  /// Number of packets due at `now` and not yet taken. The first packet is due at the first call's `now`. `now` must
  /// not precede it later.
  std::uint64_t due(Clock::time_point now) {
    if (!has_begun_) {
      has_begun_ = true;
      start_ = now;
    }
    constexpr double kMost = 1e18;  // fits into a double and 64 bits
    const std::chrono::duration<double> passed = now - start_;
    return static_cast<std::uint64_t>(std::min(kMost, per_second_ * passed.count())) + 1 - taken_;
  }
  /// Takes the next `count` due packets.
  void take(std::uint64_t count) { taken_ += count; }
  /// When packet `number` is due, counted from 0, in ns of the clock. Precondition: due() was called.
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
