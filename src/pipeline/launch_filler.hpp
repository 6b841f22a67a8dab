// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/unit_queue.hpp"
#include "pipeline/device_launch.hpp"
#include "pipeline/device_use.hpp"

#include <cstdint>

namespace catena::runtime {

/// Takes the units of a queue, in order, into launches; a unit for the host waits until the units before it are done.
/// One thread. Call order: begin() -> fill() .. -> release(), and again; while a unit is for_host(), no begin() before
/// its take_for_host().
class LaunchFiller {
 public:
  /// `in` outlives this.
  explicit LaunchFiller(memory::UnitQueue& in) : in_(&in) {}

  bool has_units() const { return next_ != nullptr || for_host_ != nullptr || !in_->empty(); }
  /// Whether all units were taken, and no unit follows.
  bool is_drained() const { return next_ == nullptr && for_host_ == nullptr && in_->drained(); }

  /// The launch being filled, or null.
  DeviceLaunch* launch() const { return launch_; }
  /// Starts to fill `launch`, which outlives this.
  void begin(DeviceLaunch& launch);
  /// Adds units, until the launch is full, the queue is empty, or a unit is for the host: it comes from a stage
  /// without the device, or has data on another device than `use`. Whether a unit was added.
  bool fill(DeviceUse const& use);
  bool is_full() const { return next_ != nullptr || launch_->is_full(); }
  /// Returns the launch, or null.
  DeviceLaunch* release();

  /// The unit for the host, or null.
  memory::Unit* for_host() const { return for_host_; }
  /// Without a device the next unit is for the host.
  void divert();
  /// The unit for the host is done.
  void take_for_host() { for_host_ = nullptr; }

 private:
  memory::Unit* take();

  memory::UnitQueue* in_;
  memory::Unit* next_ = nullptr;  ///< taken from the queue, but too large for the last launch
  memory::Unit* for_host_ = nullptr;
  DeviceLaunch* launch_ = nullptr;
  std::uint32_t launches_ = 0;  ///< number begun
};

}  // namespace catena::runtime
