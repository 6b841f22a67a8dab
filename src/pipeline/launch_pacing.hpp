// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace catena::runtime {

/// How long a launch with room left waits for more packets while others run. Launches that start evenly spread over
/// the time of one launch keep the device as busy as possible; to wait longer only adds to the latency. One thread.
class LaunchPacing {
 public:
  using Clock = std::chrono::steady_clock;
  /// `in_flight`: number of launches on the device at a time. `max_delay`: no launch waits longer.
  LaunchPacing(std::uint32_t in_flight, std::chrono::nanoseconds max_delay)
      : in_flight_(in_flight), max_delay_(max_delay) {}

  /// A launch started.
  void submitted(Clock::time_point now) { last_submit_ = now; }
  /// A launch is done, `took` after its start.
  void completed(std::chrono::nanoseconds took) { launch_time_ += (took - launch_time_) / kWeight; }
  /// The next launches are on another device, or another part of it.
  void forget() { launch_time_ = std::chrono::nanoseconds(0); }
  /// Whether a launch filled since `since` has waited long enough.
  bool is_due(Clock::time_point since, Clock::time_point now) const {
    return now - last_submit_ > launch_time_ / in_flight_ || now - since > max_delay_;
  }

 private:
  /// A launch counts for one part in this many in the average.
  static constexpr int kWeight = 8;

  std::uint32_t in_flight_;
  std::chrono::nanoseconds max_delay_;
  std::chrono::nanoseconds launch_time_{0};  ///< of a launch, on average
  Clock::time_point last_submit_;
};

}  // namespace catena::runtime
