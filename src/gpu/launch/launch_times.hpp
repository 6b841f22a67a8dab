// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "gpu/device/device.hpp"

/// Times at which a device works on the parts of a launch.
namespace catena::kernel {

/// Times at which the device reached the parts of a launch, in ns of the host's steady clock.
struct LaunchTimes {
  std::int64_t begin_ns = 0;       ///< the moves to the device were next
  std::int64_t moved_in_ns = 0;    ///< the kernel's input was on the device
  std::int64_t computed_ns = 0;    ///< the kernel was done
  std::int64_t moved_back_ns = 0;  ///< results and packets were on the host
};

/// Converts a device's clock to the host's steady clock. The clocks are compared once: times are accurate to a few
/// microseconds, and drift as clocks do. Launches that share a DeviceClock have the same error.
class DeviceClock {
 public:
  /// Waits a few times for `stream`, which must be idle. Errors: as Stream::record_timestamp(); DeadlineExceeded,
  /// naming `device`, if the device does not respond.
  static Result<std::shared_ptr<DeviceClock const>> create(device::Stream& stream, std::string_view device);
  /// Host time at which the device reached a timestamp of any of its streams. Errors: as Event::since().
  Result<std::int64_t> ns_of(device::Event& timestamp) const;

 private:
  DeviceClock() = default;
  std::unique_ptr<device::Event> reference_;
  std::int64_t reference_ns_ = 0;  ///< host time at which the device reached reference_
};

/// The timestamps of one launch in flight. Belongs to its launch's thread.
class LaunchTimestamps {
 public:
  /// The timed points of a launch, in this order.
  enum Point : std::uint8_t { kBegin, kMovedIn, kComputed, kMovedBack, kPoints };

  /// Enables put() from now on.
  void start(std::shared_ptr<DeviceClock const> clock) { clock_ = std::move(clock); }
  bool started() const { return clock_ != nullptr; }
  /// Records on `stream`; does nothing before start().
  Status put(device::Stream& stream, Point point);
  /// Sets the point to `timestamp`, owned by a recording; null: the point is not timed.
  void use(Point point, device::Event* timestamp) { timestamps_[point] = timestamp; }
  /// Times of the last launch, which must be done. `kernel` is named in errors. FailedPrecondition: no timestamp since
  /// start(), or the launch is not done.
  Result<LaunchTimes> times(std::string_view kernel) const;

 private:
  std::shared_ptr<DeviceClock const> clock_;
  std::array<device::Event*, kPoints> timestamps_{};
  std::array<std::unique_ptr<device::Event>, kPoints> own_;  ///< of put()
};

}  // namespace catena::kernel
