// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "packet/memory/unit_queue.hpp"
#include "pipeline/binding_slot.hpp"
#include "pipeline/device_binding.hpp"
#include "pipeline/device_stage_options.hpp"
#include "pipeline/launch_filler.hpp"
#include "pipeline/launch_settlement.hpp"
#include "pipeline/launches_in_flight.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/ticker.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace catena::runtime {

/// An NF on a device: fills a batch of units, starts copy + kernel + copy, and polls. Units leave in order.
///
/// When the device fails or exceeds its limit, here or at another stage of its DeviceUse, no further launch is started,
/// and the log reports it at once. Running launches may still succeed. After a failed launch the stage waits, within
/// the limit, until nothing of it runs any more. Its units, and all later ones, are decided by the NF's CPU
/// implementation, after a ReadBack if the plan needs one. Packets are dropped with reason device_failed if the device
/// may have changed them in part, or has their newest bytes and does not return them. If one of several small units in
/// a group is dropped, the whole group is. If the device may still write to the packets, their slots are never reused.
///
/// Once another device is available, or the same one again, the stage can continue with it: attach() -> bind(). The
/// same holds for another partition of its device.
class DeviceStage final : public PacketStage {
 public:
  static Result<std::unique_ptr<DeviceStage>> create(nf::Instance& instance, std::uint32_t position,
                                                     kernel::DeviceNf& device_nf, memory::PacketPool& pool,
                                                     memory::UnitQueue& in, memory::UnitQueue& out,
                                                     DeviceStageOptions const& options);
  Result<Progress> poll() override;
  /// Creates a binding for bind(), beside a running stage: takes as long as create(). `bounds`: as options.bounds.
  /// Errors: as create(). Any thread.
  Result<std::unique_ptr<DeviceBinding>> attach(kernel::DeviceNf& device_nf, packet::FieldSet only_on_device,
                                                DeviceUse& use, kernel::LaunchBounds const& bounds = {});
  /// The same on the stage's current device, for the only thread that binds.
  Result<std::unique_ptr<DeviceBinding>> attach(kernel::LaunchBounds const& bounds);
  /// Of the current binding, for the only thread that binds.
  device::Device& device() const { return binding_.latest().device(); }
  /// The stage takes `binding` as soon as nothing uses the current one. If both have the same DeviceUse, the stage
  /// starts no launch until then, and takes nothing once the device is out of use. A binding to another device is
  /// taken only when the current device is out of use. unbind() returns the previous binding. With another device,
  /// downstream stages must have taken theirs first: they will get units whose data is only on it. Any thread, one
  /// call at a time.
  void bind(std::unique_ptr<DeviceBinding> binding) { binding_.offer(std::move(binding)); }
  /// Whether the last binding was taken.
  bool has_taken_binding() const { return binding_.has_taken(); }
  /// The binding before the last one taken, or one not taken, so that it is not destroyed on the packet path.
  /// Any thread.
  std::unique_ptr<DeviceBinding> unbind() { return binding_.reclaim(); }
  /// Position of its NF in the chain.
  std::uint32_t position() const { return position_; }
  /// OK, or why the device is out of use for the chain, even if this stage had no work left. Any thread.
  Status device_status() const { return binding_.device_status(); }
  /// True if a device never answered: its work may still run, and keeps its memory.
  bool abandoned() const { return binding_.current().gave_up(); }

 private:
  DeviceStage(nf::Instance& instance, std::uint32_t position, memory::PacketPool& pool, memory::UnitQueue& in,
              memory::UnitQueue& out, DeviceStageOptions const& options, std::unique_ptr<DeviceUse> own_use,
              std::unique_ptr<DeviceBinding> binding);
  bool has_launches() const { return !in_flight_.empty() || filler_.launch() != nullptr; }
  void take_binding();
  bool collect();
  bool fill();
  bool is_due(DeviceLaunch const& launch) const;
  void submit();
  bool decide_on_host();
  void deliver(std::span<memory::Unit* const> units);
  void fail(Status const& status);
  void give_up_filling();

  nf::Instance* instance_;
  std::uint32_t position_;
  memory::PacketPool* pool_;
  memory::UnitQueue* out_;
  DeviceStageOptions options_;
  std::unique_ptr<DeviceUse> own_use_;  ///< null: the options have one
  Ticker ticker_;
  BindingSlot binding_;
  LaunchFiller filler_;
  LaunchesInFlight in_flight_;
  LaunchSettlement settlement_;
};

}  // namespace catena::runtime
