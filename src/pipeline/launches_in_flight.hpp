// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/device_launch.hpp"
#include "pipeline/launch_pacing.hpp"
#include "pipeline/launch_trace.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <cstdint>
#include <deque>

namespace catena::runtime {

/// The launches of a stage on a device, in order: starts them, watches them, and measures the time of one. One thread.
/// Call order at each poll: advance() -> while the oldest() is running: poll() until it is not kDone; pop() after each
/// launch whose units were passed on.
class LaunchesInFlight {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Outcome : std::uint8_t { kWaiting, kDone, kLate };
  /// `limit`: maximum time of a launch until it is late.
  LaunchesInFlight(std::chrono::nanoseconds limit, LaunchPacing const& pacing, LaunchTrace trace)
      : limit_(limit), pacing_(pacing), trace_(trace) {}

  bool empty() const { return launches_.empty(); }
  /// The oldest launch, or null.
  DeviceLaunch* oldest() const { return launches_.empty() ? nullptr : launches_.front(); }
  /// Starts `launch`, which stays valid until pop(), after the others. Errors: as DeviceLaunch::submit(); it is in
  /// flight nevertheless.
  Status submit(DeviceLaunch& launch);
  /// Adds a launch without a start, to be settled after the launches before it.
  void add(DeviceLaunch& launch) { launches_.push_back(&launch); }
  /// Starts the device work of each launch whose packets are in staging, whether the launches before it are done or
  /// not. The first error of a launch, as DeviceLaunch::advance().
  Status advance();
  /// State of the oldest launch. If kLate, or after an error, it has failed. Precondition: it is running. Errors: as
  /// DeviceLaunch::poll().
  Result<Outcome> poll();
  /// Removes the oldest launch, now empty.
  DeviceLaunch& pop();
  /// Whether `filling`, with room left, has waited long enough while these run.
  bool is_due(DeviceLaunch const& filling) const { return pacing_.is_due(filling.since(), Clock::now()); }
  /// The next launches are on another device, or another part of it.
  void forget_times() { pacing_.forget(); }

 private:
  std::chrono::nanoseconds limit_;
  LaunchPacing pacing_;
  LaunchTrace trace_;
  std::deque<DeviceLaunch*> launches_;  ///< the oldest first
  std::int64_t ready_ns_ = 0;           ///< the oldest was found done, and is traced; 0: neither
};

}  // namespace catena::runtime
