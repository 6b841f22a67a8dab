// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hostcopy/host_mover.hpp"
#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "pipeline/device_launch.hpp"
#include "pipeline/device_stage_options.hpp"
#include "pipeline/device_use.hpp"
#include "pipeline/host_recovery.hpp"

#include <catena/core/status.hpp>

#include <memory>
#include <vector>

namespace catena::runtime {

/// A device, or a part of it, prepared for the launches of one stage, and the way back of its units to the host. One
/// thread at a time, unless stated otherwise.
class DeviceBinding {
 public:
  /// Makes the stage's launches: compiles nothing, but allocates, and launches the kernel once without packets.
  /// `options`: of the stage, with the fields, use and bounds of this device; `use` is not null. All arguments but the
  /// options outlive this. InvalidArgument for fields only on the device without a shared buffer. Other errors: as
  /// nf::DeviceBatch::create() and start_trace().
  static Result<std::unique_ptr<DeviceBinding>> create(nf::Instance& instance, kernel::DeviceNf& device_nf,
                                                       memory::PacketPool& pool, DeviceStageOptions const& options);
  /// Abandons an unresponsive device.
  ~DeviceBinding();
  DeviceBinding(DeviceBinding const&) = delete;
  DeviceBinding& operator=(DeviceBinding const&) = delete;

  // Any thread.
  kernel::DeviceNf& device_nf() const { return *device_nf_; }
  device::Device& device() const { return device_nf_->device(); }
  packet::FieldSet only_on_device() const { return only_on_device_; }
  DeviceUse& use() const { return *use_; }

  /// Continues after `before`, whose last unit has left the stage. Before the first launch.
  void continue_after(DeviceBinding const& before);
  /// A launch not in use; null: all are.
  DeviceLaunch* take_idle();
  /// Returns a launch, which is empty.
  void put_back(DeviceLaunch& launch) { idle_.push_back(&launch); }
  /// Brings data of a unit to the host, so it can continue without the device. As HostRecovery::poll(); kLost as well
  /// if an earlier device has the data.
  HostRecovery::Outcome recover(memory::Unit const& unit);
  /// Takes the device out of use for the whole chain, and logs the first such call. DeadlineExceeded: it does not
  /// answer.
  void lose(Status const& why);
  /// The device took longer than the limit of the options.
  Status too_late() const { return recovery_.too_late(); }
  /// Whether this device, or one lost before, did not answer: its work may still run.
  bool gave_up() const { return gave_up_ || recovery_.gave_up(); }

 private:
  DeviceBinding(nf::Instance& instance, kernel::DeviceNf& device_nf, memory::PacketPool& pool,
                DeviceStageOptions const& options);

  nf::Instance* instance_;
  kernel::DeviceNf* device_nf_;
  packet::FieldSet only_on_device_;
  DeviceUse* use_;
  packet::FieldSet lost_fields_ = 0;  ///< fields of units held only by previous devices
  bool gave_up_ = false;
  std::vector<DeviceLaunch> launches_;
  std::vector<DeviceLaunch*> idle_;  ///< of launches_; the last one is used first
  hostcopy::HostMover mover_;        ///< for the launches, and destroyed before them
  HostRecovery recovery_;
};

}  // namespace catena::runtime
