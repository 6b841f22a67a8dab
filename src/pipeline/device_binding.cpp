// SPDX-License-Identifier: Apache-2.0
// The devices of a DeviceStage: how it prepares one, and goes on with another.
#include "pipeline/device_stage.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace catena::runtime {

DeviceStage::DeviceBinding::DeviceBinding(DeviceStage const& stage, kernel::DeviceNf& device_nf,
                                          packet::FieldSet only_on_device, DeviceUse& use)
    : device_nf_(&device_nf),
      only_on_device_(only_on_device),
      use_(&use),
      // a device that does not answer is another matter, and has more time
      mover_(stage.options_.open_engine(),
             {stage.options_.in_flight, stage.options_.units_per_launch * stage.pool_->unit_packets()},
             stage.options_.limit / 2),
      recovery_(stage.instance_->name(), device_nf, *stage.pool_, use, only_on_device, stage.options_.limit) {}

DeviceStage::DeviceBinding::~DeviceBinding() {
  if (!use_->answers()) {
    device_nf_->device().abandon(use_->reason());
  }
}

Result<std::unique_ptr<DeviceStage::DeviceBinding>> DeviceStage::attach(kernel::DeviceNf& device_nf,
                                                                        packet::FieldSet only_on_device, DeviceUse& use,
                                                                        kernel::LaunchBounds const& bounds) {
  if (only_on_device != 0 && device_nf.shared() == nullptr) {
    return absl::InvalidArgumentError(
        concat("NF ", instance_->name(), ": a plan with fields left on the device alone needs a shared buffer"));
  }
  kernel::LaunchBounds own = bounds;
  const std::uint32_t most = options_.units_per_launch * pool_->unit_packets();
  own.room = most;
  own.max_packets = bounds.max_packets == 0 ? most : std::clamp(bounds.max_packets, pool_->unit_packets(), most);
  std::unique_ptr<DeviceBinding> binding(new DeviceBinding(*this, device_nf, only_on_device, use));
  for (std::uint32_t i = 0; i < options_.in_flight; ++i) {
    InFlightBatch batch_in_flight;
    CATENA_ASSIGN_OR_RETURN(batch_in_flight.batch,
                            nf::DeviceBatch::create(*instance_, device_nf, own, binding->mover_));
    if (i == 0 && !batch_in_flight.batch->keeps_to_part()) {
      spdlog::warn("{}: its plan moves packets by copies, and so its kernel runs anywhere on {}, not in its part",
                   instance_->name(), device_nf.device().info().name);
    }
    if (options_.trace != nullptr) {
      CATENA_RETURN_IF_ERROR(batch_in_flight.batch->start_trace());
      batch_in_flight.timeline.lane = options_.in_flight - 1 - i;  // the last one made is the first one used
    }
    batch_in_flight.slots.reserve(batch_in_flight.batch->room());
    binding->idle_.push_back(std::move(batch_in_flight));
  }
  return binding;
}

Result<std::unique_ptr<DeviceStage::DeviceBinding>> DeviceStage::attach(kernel::LaunchBounds const& bounds) {
  DeviceBinding const* now = nullptr;
  {
    const std::scoped_lock lock(binding_mutex_);
    now = binding_.get();  // only take_binding() replaces it
  }
  return attach(*now->device_nf_, now->only_on_device_, *now->use_, bounds);
}

device::Device& DeviceStage::device() const {
  const std::scoped_lock lock(binding_mutex_);
  return binding_->device_nf_->device();
}

void DeviceStage::bind(std::unique_ptr<DeviceBinding> binding) {
  const std::scoped_lock lock(binding_mutex_);
  const bool is_same_device = binding->use_ == binding_->use_;
  if (is_same_device && !use().allowed()) {
    return;  // lost meanwhile: another device may be bound already
  }
  is_moving_on_.store(is_same_device, std::memory_order_relaxed);
  delete next_binding_.exchange(binding.release(), std::memory_order_release);
}

std::unique_ptr<DeviceStage::DeviceBinding> DeviceStage::unbind() {
  const std::scoped_lock lock(binding_mutex_);
  std::unique_ptr<DeviceBinding> binding(reclaimable_.exchange(nullptr, std::memory_order_acquire));
  if (binding == nullptr) {
    binding.reset(next_binding_.exchange(nullptr, std::memory_order_acquire));
    is_moving_on_.store(false, std::memory_order_relaxed);
  }
  return binding;
}

/// Whether a binding to another partition of the stage's device waits: no other launch begins before it is taken.
bool DeviceStage::is_moving_on() const { return is_moving_on_.load(std::memory_order_relaxed) && use().allowed(); }

/// Goes on with another device, or another part of it, where nothing of what was before is left and what was taken
/// before that is reclaimed.
void DeviceStage::take_binding() {
  if ((use().allowed() && !is_moving_on()) || !in_flight_.empty() || filling_.batch != nullptr ||
      host_fallback_ != nullptr || reclaimable_.load(std::memory_order_relaxed) != nullptr) {
    return;
  }
  const std::scoped_lock lock(binding_mutex_);
  DeviceBinding* const next = next_binding_.load(std::memory_order_acquire);
  if (next == nullptr || (next->use_ == binding_->use_) != use().allowed()) {
    return;
  }
  if (next->use_ != binding_->use_) {
    lost_fields_ |= binding_->only_on_device_;
  }
  reclaimable_.store(binding_.release(), std::memory_order_release);
  binding_.reset(next);
  device_status_ = absl::OkStatus();
  launch_time_ = std::chrono::nanoseconds(0);
  is_moving_on_.store(false, std::memory_order_relaxed);
  // last: a reader that finds the binding taken finds what was there before
  next_binding_.store(nullptr, std::memory_order_release);
}

}  // namespace catena::runtime
