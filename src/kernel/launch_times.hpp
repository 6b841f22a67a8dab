// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "device/device.hpp"

/// When a device works on the parts of a launch.
namespace catena::kernel {

/// When the device came to the parts of a launch, in ns of the host's steady clock.
struct LaunchTimes {
  std::int64_t begin_ns = 0;       ///< the moves to the device were next
  std::int64_t moved_in_ns = 0;    ///< what the kernel reads was on the device
  std::int64_t computed_ns = 0;    ///< the kernel was done
  std::int64_t moved_back_ns = 0;  ///< results and packets were on the host
};

/// A device's clock beside the host's steady clock. They are set beside each other once: times lie a few microseconds
/// beside the host's, and drift as clocks do. Launches that share one differ by the same.
class DeviceClock {
 public:
  /// Waits a few times for `stream`, which has nothing to do. Errors: as Stream::record_timestamp(); DeadlineExceeded,
  /// naming `device`, if the device does not answer.
  static Result<std::shared_ptr<DeviceClock const>> create(device::Stream& stream, std::string_view device);
  /// The host's time when the device came to a timestamp of any of its streams. Errors: as Event::since().
  Result<std::int64_t> ns_of(device::Event& timestamp) const;

 private:
  DeviceClock() = default;
  std::unique_ptr<device::Event> reference_;
  std::int64_t reference_ns_ = 0;  ///< of the host, when the device came to reference_
};

/// The timestamps of one launch in flight. Belongs to its launch's thread.
class LaunchTimestamps {
 public:
  /// The points of a launch that are timed, in this order.
  enum Point : std::uint8_t { kBegin, kMovedIn, kComputed, kMovedBack, kPoints };

  /// From now on put() records.
  void start(std::shared_ptr<DeviceClock const> clock) { clock_ = std::move(clock); }
  bool started() const { return clock_ != nullptr; }
  /// Records on `stream`; does nothing before start().
  Status put(device::Stream& stream, Point point);
  /// The point is `timestamp`, which a recording owns; null: it is not timed.
  void use(Point point, device::Event* timestamp) { timestamps_[point] = timestamp; }
  /// Of the last launch, which is done. `kernel` is named in errors. FailedPrecondition: nothing was marked since
  /// start(), or the launch is not done.
  Result<LaunchTimes> times(std::string_view kernel) const;

 private:
  std::shared_ptr<DeviceClock const> clock_;
  std::array<device::Event*, kPoints> timestamps_{};
  std::array<std::unique_ptr<device::Event>, kPoints> own_;  ///< of put()
};

}  // namespace catena::kernel
