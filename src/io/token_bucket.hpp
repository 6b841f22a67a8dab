// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace catena::io {

/// How many packets a rate allows: a bucket that fills at `per_second` and holds one millisecond's worth of packets,
/// but at least `min_burst`, so that a late poll is caught up and a long pause is not. Starts with one packet.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;

  TokenBucket(double per_second, std::uint32_t min_burst, Clock::time_point start)
      : per_second_(per_second), burst_(std::max(static_cast<double>(min_burst), per_second_ / 1000.0)), last_(start) {}

  /// Whole packets allowed at `now`.
  std::uint64_t available(Clock::time_point now) {
    const std::chrono::duration<double> passed = now - last_;
    last_ = now;
    tokens_ = std::min(burst_, tokens_ + per_second_ * passed.count());
    return static_cast<std::uint64_t>(tokens_);
  }
  /// Uses up `count` packets of those that were available.
  void take(std::uint64_t count) { tokens_ -= static_cast<double>(count); }

 private:
  double per_second_;
  double burst_;
  Clock::time_point last_;
  double tokens_ = 1.0;
};

}  // namespace catena::io
