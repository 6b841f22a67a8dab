// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_stage.hpp"

#include "pipeline/recorder.hpp"

#include <utility>

namespace catena::runtime {

DeviceStage::DeviceStage(nf::Instance& instance, std::uint32_t position, memory::PacketPool& pool,
                         memory::UnitQueue& in, memory::UnitQueue& out, DeviceStageOptions const& options,
                         std::unique_ptr<DeviceUse> own_use, std::unique_ptr<DeviceBinding> binding)
    : PacketStage(instance.name()),
      instance_(&instance),
      position_(position),
      pool_(&pool),
      out_(&out),
      options_(options),
      own_use_(std::move(own_use)),
      ticker_(instance, options.live_clock),
      binding_(std::move(binding)),
      filler_(in),
      in_flight_(options.limit, LaunchPacing(options.in_flight, options.max_batch_delay), LaunchTrace(options.trace)),
      settlement_(options.limit) {}

Result<std::unique_ptr<DeviceStage>> DeviceStage::create(nf::Instance& instance, std::uint32_t position,
                                                         kernel::DeviceNf& device_nf, memory::PacketPool& pool,
                                                         memory::UnitQueue& in, memory::UnitQueue& out,
                                                         DeviceStageOptions const& options) {
  DeviceStageOptions own = options;
  std::unique_ptr<DeviceUse> own_use;
  if (own.use == nullptr) {
    own_use = std::make_unique<DeviceUse>();
    own.use = own_use.get();
  }
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<DeviceBinding> binding,
                          DeviceBinding::create(instance, device_nf, pool, own));
  return std::unique_ptr<DeviceStage>(
      new DeviceStage(instance, position, pool, in, out, own, std::move(own_use), std::move(binding)));
}

Result<std::unique_ptr<DeviceBinding>> DeviceStage::attach(kernel::DeviceNf& device_nf, packet::FieldSet only_on_device,
                                                           DeviceUse& use, kernel::LaunchBounds const& bounds) {
  DeviceStageOptions options = options_;
  options.only_on_device = only_on_device;
  options.use = &use;
  options.bounds = bounds;
  return DeviceBinding::create(*instance_, device_nf, *pool_, options);
}

Result<std::unique_ptr<DeviceBinding>> DeviceStage::attach(kernel::LaunchBounds const& bounds) {
  DeviceBinding const& now = binding_.latest();
  return attach(now.device_nf(), now.only_on_device(), now.use(), bounds);
}

Result<Progress> DeviceStage::poll() {
  instance_->board().answer(instance_->nf());
  if (binding_.has_offer()) {
    take_binding();
  }
  bool worked = collect();
  if (!has_launches()) {  // under a steady load that seldom is so; then packets tell the time
    ticker_.poll();
  }
  if (may_take()) {
    worked = fill() || worked;
    worked = decide_on_host() || worked;
  }
  if (!has_launches() && filler_.is_drained()) {
    out_->close();
    return Progress::kFinished;
  }
  return worked ? Progress::kWorked : Progress::kIdle;
}

/// Goes on with another device, or another part of it, where nothing of what was before is left.
void DeviceStage::take_binding() {
  if (!has_launches() && filler_.for_host() == nullptr && binding_.take()) {
    in_flight_.forget_times();
  }
}

bool DeviceStage::collect() {
  if (const Status status = in_flight_.advance(); !status.ok()) {
    fail(status);
  }
  DeviceBinding& binding = binding_.current();
  bool worked = false;
  while (DeviceLaunch* const oldest = in_flight_.oldest()) {
    if (oldest->state() == DeviceLaunch::State::kRunning) {
      const Result<LaunchesInFlight::Outcome> outcome = in_flight_.poll();
      if (!outcome.ok() || *outcome == LaunchesInFlight::Outcome::kLate) {
        fail(outcome.ok() ? binding.too_late() : outcome.status());
        continue;
      }
      if (*outcome == LaunchesInFlight::Outcome::kWaiting) {
        break;
      }
    } else if (!settlement_.poll(*oldest, binding)) {
      break;
    }
    deliver(oldest->units());
    oldest->clear();
    binding.put_back(in_flight_.pop());
    worked = true;
  }
  return worked;
}

bool DeviceStage::fill() {
  DeviceBinding& binding = binding_.current();
  if (!binding.use().allowed()) {
    give_up_filling();
    return false;
  }
  bool worked = false;
  while (binding.use().allowed()) {
    if (filler_.launch() == nullptr) {
      if (filler_.for_host() != nullptr || binding_.is_moving_on() || !filler_.has_units()) {
        return worked;
      }
      DeviceLaunch* const idle = binding.take_idle();
      if (idle == nullptr) {
        return worked;
      }
      filler_.begin(*idle);
    }
    worked = filler_.fill(binding.use()) || worked;
    DeviceLaunch const& launch = *filler_.launch();
    if (launch.units().empty()) {
      if (filler_.for_host() != nullptr) {
        binding.put_back(*filler_.release());
      }
      return worked;
    }
    if (!filler_.is_full() && !is_due(launch)) {
      return worked;
    }
    submit();
  }
  return worked;
}

/// Whether a launch with room left waits for no more packets.
bool DeviceStage::is_due(DeviceLaunch const& launch) const {
  return in_flight_.empty() || filler_.is_drained() || filler_.for_host() != nullptr || binding_.is_moving_on() ||
         in_flight_.is_due(launch);
}

void DeviceStage::submit() {
  if (const Status status = in_flight_.submit(*filler_.release()); !status.ok()) {
    fail(status);
  }
}

/// The next unit that the CPU implementation is to decide though a device is there, or was. True if there was one.
bool DeviceStage::decide_on_host() {
  DeviceBinding& binding = binding_.current();
  if (!binding.use().allowed()) {
    filler_.divert();
  }
  memory::Unit* const unit = filler_.for_host();
  if (unit == nullptr || has_launches()) {
    return false;
  }
  const HostRecovery::Outcome recovered = binding.recover(*unit);
  if (recovered == HostRecovery::Outcome::kWaiting) {
    return false;
  }
  filler_.take_for_host();
  if (recovered == HostRecovery::Outcome::kSaved) {
    instance_->process(pool_->batch(*unit));
  } else {
    instance_->drop_alive(pool_->batch(*unit), nf::FrameworkReason::kDeviceFailed);
  }
  unit->host_fallback = true;
  deliver(std::span(&unit, 1));
  return true;
}

void DeviceStage::deliver(std::span<memory::Unit* const> units) {
  for (memory::Unit* const unit : units) {
    if (options_.lines != nullptr) {
      take_lines(*instance_, position_, pool_->batch(*unit), options_.lines->of(*unit));
    }
    count(unit->count);
    unit->device_epoch = binding_.current().use().epoch();
  }
  // together: the next stage makes one launch of them
  out_->push(units);
}

/// Takes the device out of use for the whole chain.
void DeviceStage::fail(Status const& status) {
  binding_.current().lose(status);
  give_up_filling();
}

/// What waited for a launch ends without the device, after the launches before it.
void DeviceStage::give_up_filling() {
  if (DeviceLaunch* const launch = filler_.release(); launch != nullptr) {
    in_flight_.add(*launch);
  }
}

}  // namespace catena::runtime
