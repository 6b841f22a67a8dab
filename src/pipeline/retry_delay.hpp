// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

namespace catena::runtime {

/// Times of tries at something until it succeeds: the first at once, and then each after twice the wait of the one
/// before, up to a longest. One thread.
class RetryDelay {
 public:
  using Clock = std::chrono::steady_clock;

  /// `first`: between the first and the second try.
  RetryDelay(std::chrono::milliseconds first, std::chrono::milliseconds longest) : first_(first), longest_(longest) {}

  /// Whether to try now; it counts as tried then.
  bool is_due(Clock::time_point now) {
    if (now < next_) {
      return false;
    }
    next_ = now + delay_;
    delay_ = std::min(delay_ * 2, longest_);
    return true;
  }
  /// The next try is a first one.
  void restart() {
    delay_ = first_;
    next_ = Clock::time_point::min();
  }

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds delay_ = first_;
  Clock::time_point next_ = Clock::time_point::min();
};

}  // namespace catena::runtime
