// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_binding.hpp"

#include "pipeline/stage.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

namespace catena::runtime {
namespace {

/// Of a launch, at most.
std::uint32_t packets_of(DeviceStageOptions const& options, memory::PacketPool const& pool) {
  return options.units_per_launch * pool.unit_packets();
}

}  // namespace

DeviceBinding::DeviceBinding(nf::Instance& instance, kernel::DeviceNf& device_nf, memory::PacketPool& pool,
                             DeviceStageOptions const& options)
    : instance_(&instance),
      device_nf_(&device_nf),
      only_on_device_(options.only_on_device),
      use_(options.use),
      // a device that does not answer is another matter, and has more time
      mover_(options.open_engine(), {options.in_flight, packets_of(options, pool)}, options.limit / 2),
      recovery_(instance.name(), device_nf, pool, *options.use, options.only_on_device, options.limit) {}

DeviceBinding::~DeviceBinding() {
  if (!use_->answers()) {
    device().abandon(use_->reason());
  }
}

Result<std::unique_ptr<DeviceBinding>> DeviceBinding::create(nf::Instance& instance, kernel::DeviceNf& device_nf,
                                                             memory::PacketPool& pool,
                                                             DeviceStageOptions const& options) {
  if (options.only_on_device != 0 && device_nf.shared() == nullptr) {
    return absl::InvalidArgumentError(
        concat("NF ", instance.name(), ": a plan with fields left on the device alone needs a shared buffer"));
  }
  kernel::LaunchBounds bounds = options.bounds;
  const std::uint32_t most = packets_of(options, pool);
  bounds.room = most;
  bounds.max_packets = bounds.max_packets == 0 ? most : std::clamp(bounds.max_packets, pool.unit_packets(), most);
  std::unique_ptr<DeviceBinding> binding(new DeviceBinding(instance, device_nf, pool, options));
  binding->launches_.reserve(options.in_flight);
  for (std::uint32_t i = 0; i < options.in_flight; ++i) {
    CATENA_ASSIGN_OR_RETURN(std::unique_ptr<nf::DeviceBatch> batch,
                            nf::DeviceBatch::create(instance, device_nf, bounds, binding->mover_));
    if (i == 0 && !batch->keeps_to_part()) {
      spdlog::warn("{}: its plan moves packets by copies, and so its kernel runs anywhere on {}, not in its part",
                   instance.name(), device_nf.device().info().name);
    }
    if (options.trace != nullptr) {
      CATENA_RETURN_IF_ERROR(batch->start_trace());
    }
    const std::uint32_t lane = options.in_flight - 1 - i;  // the last one made is the first one used
    binding->launches_.emplace_back(std::move(batch), pool, options.lines != nullptr ? 0 : kPacketsAtOnce, lane);
    binding->idle_.push_back(&binding->launches_.back());
  }
  return binding;
}

void DeviceBinding::continue_after(DeviceBinding const& before) {
  gave_up_ = before.gave_up_;
  lost_fields_ = before.lost_fields_ | (before.use_ != use_ ? before.only_on_device_ : 0);
}

DeviceLaunch* DeviceBinding::take_idle() {
  if (idle_.empty()) {
    return nullptr;
  }
  DeviceLaunch* const launch = idle_.back();
  idle_.pop_back();
  return launch;
}

HostRecovery::Outcome DeviceBinding::recover(memory::Unit const& unit) {
  if (unit.host_fallback) {
    return HostRecovery::Outcome::kSaved;
  }
  if (use_->is_other(unit.device_epoch)) {
    return (only_on_device_ | lost_fields_) == 0 ? HostRecovery::Outcome::kSaved : HostRecovery::Outcome::kLost;
  }
  return recovery_.poll(unit);
}

void DeviceBinding::lose(Status const& why) {
  if (absl::IsDeadlineExceeded(why)) {
    gave_up_ = true;
    use_->give_up();
  }
  if (use_->stop(Status(why.code(), concat("NF ", instance_->name(), ": ", std::string(why.message()))))) {
    spdlog::error(
        "NF {}: device {} is out of use for this chain: {}. From now on the CPU implementations of its NFs process "
        "packets. Packets whose newest bytes are on the device are copied back; packets not given back or perhaps half "
        "changed are dropped (device_failed).",
        instance_->name(), device().info().name, why.ToString());
  }
}

}  // namespace catena::runtime
