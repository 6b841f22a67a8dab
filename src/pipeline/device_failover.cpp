// SPDX-License-Identifier: Apache-2.0
// What a DeviceStage does when its device is lost, or when packets come that left the device before.
#include "pipeline/device_stage.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <utility>

namespace catena::runtime {

using Clock = std::chrono::steady_clock;

/// Takes the device out of use for the whole chain.
void DeviceStage::fail(Status const& status) {
  if (absl::IsDeadlineExceeded(status)) {
    abandoned_ = true;
    use().give_up();
  }
  if (use().stop(Status(status.code(), concat("NF ", instance_->name(), ": ", std::string(status.message()))))) {
    spdlog::error(
        "NF {}: device {} is out of use for this chain: {}. From now on the CPU implementations of its NFs process "
        "packets. Packets whose newest bytes are on the device are copied back; packets not given back or perhaps half "
        "changed are dropped (device_failed).",
        instance_->name(), binding_->device_nf_->device().info().name, status.ToString());
  }
  notice();
}

/// Keeps why the device is out of use, and hands on what waited for a launch.
void DeviceStage::notice() {
  if (device_status_.ok()) {
    device_status_ = use().reason();
  }
  if (filling_.batch) {
    filling_.state = InFlightBatch::State::kSettling;
    in_flight_.push_back(std::move(filling_));
    filling_ = InFlightBatch{};
  }
}

/// Brings to the host what a device alone has of a unit that goes on without it.
HostRecovery::Outcome DeviceStage::recovery(memory::Unit const& unit) {
  if (unit.host_fallback) {
    return HostRecovery::Outcome::kSaved;
  }
  if (is_stale(unit)) {
    return (binding_->only_on_device_ | lost_fields_) == 0 ? HostRecovery::Outcome::kSaved
                                                           : HostRecovery::Outcome::kLost;
  }
  return binding_->recovery_.poll(unit);
}

/// The next unit that the CPU implementation is to decide though a device is there, or was. True if there was one.
bool DeviceStage::take_host_fallback() {
  if (host_fallback_ == nullptr && !use().allowed()) {
    host_fallback_ = take_unit();
  }
  if (host_fallback_ == nullptr || !in_flight_.empty() || filling_.batch) {
    return false;
  }
  const HostRecovery::Outcome recovered = recovery(*host_fallback_);
  if (recovered == HostRecovery::Outcome::kWaiting) {
    return false;
  }
  InFlightBatch single;
  single.units.push_back(std::exchange(host_fallback_, nullptr));
  memory::Unit& unit = *single.units.front();
  if (recovered == HostRecovery::Outcome::kSaved) {
    instance_->process(pool_->batch(unit));
  } else {
    instance_->drop_alive(pool_->batch(unit), nf::FrameworkReason::kDeviceFailed);
  }
  unit.host_fallback = true;
  deliver(single);
  return true;
}

/// Waits until nothing of a batch that failed runs any more. False: not known yet.
bool DeviceStage::drain(InFlightBatch& batch_in_flight) {
  if (batch_in_flight.state != InFlightBatch::State::kDraining) {
    return true;
  }
  const Result<bool> drained = batch_in_flight.batch->drained();
  if (drained.ok() && !*drained && use().answers()) {
    if (Clock::now() - batch_in_flight.since <= options_.limit) {
      return false;
    }
    fail(binding_->recovery_.too_late());
  }
  batch_in_flight.may_still_run = (!drained.ok() || !*drained) && !binding_->device_nf_->device().is_gone();
  batch_in_flight.state = InFlightBatch::State::kSettling;
  return true;
}

/// Ends a batch that the device has not: by the CPU implementation where the host has its packets, or can have them.
/// False: not yet.
bool DeviceStage::settle(InFlightBatch& batch_in_flight) {
  if (!drain(batch_in_flight)) {
    return false;
  }
  nf::DeviceBatch& batch = *batch_in_flight.batch;
  const bool quarantined = batch_in_flight.may_still_run && batch.may_write_packets();
  const bool is_lost =
      quarantined || batch.may_change_packets() || batch.may_change_on_device(binding_->only_on_device_);
  for (; batch_in_flight.settled_groups < batch_in_flight.group_ends.size(); ++batch_in_flight.settled_groups) {
    const std::size_t end = batch_in_flight.group_ends[batch_in_flight.settled_groups];
    HostRecovery::Outcome recovered = is_lost ? HostRecovery::Outcome::kLost : HostRecovery::Outcome::kSaved;
    for (std::size_t i = batch_in_flight.recovered; i < end && recovered == HostRecovery::Outcome::kSaved; ++i) {
      recovered = binding_->recovery_.poll(*batch_in_flight.units[i]);
      if (recovered == HostRecovery::Outcome::kWaiting) {
        return false;
      }
      batch_in_flight.recovered = i + 1;
    }
    // the NF has a group as one batch: it is saved or lost as one, for all that one of its units is lost
    if (recovered == HostRecovery::Outcome::kSaved) {
      batch.finish_on_cpu(batch_in_flight.settled_groups);
    } else {
      batch.drop(batch_in_flight.settled_groups, quarantined);
    }
    batch_in_flight.recovered = end;
  }
  for (memory::Unit* const unit : batch_in_flight.units) {
    unit->host_fallback = true;
    unit->quarantined = quarantined;
  }
  batch.clear();
  batch_in_flight.settled_groups = 0;
  batch_in_flight.recovered = 0;
  deliver(batch_in_flight);
  return true;
}

}  // namespace catena::runtime
