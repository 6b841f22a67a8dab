// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

namespace catena::sockets {

/// The end of a wait.
class Deadline {
 public:
  /// In `timeout_ms` milliseconds; below 0: never.
  explicit Deadline(std::int64_t timeout_ms) : end_ms_(timeout_ms < 0 ? -1 : now_ms() + timeout_ms) {}
  /// Rounded up to milliseconds. Null: never.
  explicit Deadline(timespec const* timeout)
      : Deadline(timeout == nullptr ? -1 : timeout->tv_sec * 1000 + (timeout->tv_nsec + 999'999) / 1'000'000) {}
  static std::int64_t now_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
  }
  /// As poll(2) takes it: -1 without end. At most `most_ms`, unless negative.
  int remaining_ms(int most_ms = -1) const {
    if (end_ms_ < 0) {
      return most_ms;
    }
    const std::int64_t left = std::clamp<std::int64_t>(end_ms_ - now_ms(), 0, 1'000'000'000);
    return static_cast<int>(most_ms < 0 ? left : std::min<std::int64_t>(left, most_ms));
  }
  bool is_over() const { return end_ms_ >= 0 && now_ms() >= end_ms_; }

 private:
  std::int64_t end_ms_;
};

}  // namespace catena::sockets
