// SPDX-License-Identifier: Apache-2.0
#include "pipeline/launch_settlement.hpp"

#include <catena/core/status.hpp>

namespace catena::runtime {

bool LaunchSettlement::poll(DeviceLaunch& launch, DeviceBinding& binding) {
  if (!drain(launch, binding)) {
    return false;
  }
  const bool is_quarantined = may_still_run_ && launch.batch().may_write_packets();
  if (!settle_groups(launch, binding, is_quarantined)) {
    return false;
  }
  for (memory::Unit* const unit : launch.units()) {
    unit->host_fallback = true;
    unit->quarantined = is_quarantined;
  }
  launch.batch().clear();
  *this = LaunchSettlement(limit_);
  return true;
}

/// Waits until nothing of a launch that failed runs any more. False: not known yet.
bool LaunchSettlement::drain(DeviceLaunch& launch, DeviceBinding& binding) {
  if (launch.state() != DeviceLaunch::State::kFailed) {
    return true;
  }
  const Result<bool> drained = launch.batch().drained();
  if (drained.ok() && !*drained && binding.use().answers()) {
    if (DeviceLaunch::Clock::now() - launch.since() <= limit_) {
      return false;
    }
    binding.lose(binding.too_late());
  }
  may_still_run_ = (!drained.ok() || !*drained) && !binding.device().is_gone();
  launch.come_to_rest();
  return true;
}

/// False: not all of them yet.
bool LaunchSettlement::settle_groups(DeviceLaunch& launch, DeviceBinding& binding, bool is_quarantined) {
  using Outcome = HostRecovery::Outcome;
  nf::DeviceBatch& batch = launch.batch();
  const bool is_lost =
      is_quarantined || batch.may_change_packets() || batch.may_change_on_device(binding.only_on_device());
  for (; groups_ < launch.group_ends().size(); ++groups_) {
    const std::size_t end = launch.group_ends()[groups_];
    Outcome recovered = is_lost ? Outcome::kLost : Outcome::kSaved;
    for (std::size_t i = units_; i < end && recovered == Outcome::kSaved; ++i) {
      recovered = binding.recover(*launch.units()[i]);
      if (recovered == Outcome::kWaiting) {
        return false;
      }
      units_ = i + 1;
    }
    // the NF has a group as one batch: it is saved or lost as one, for all that one of its units is lost
    if (recovered == Outcome::kSaved) {
      batch.finish_on_cpu(groups_);
    } else {
      batch.drop(groups_, is_quarantined);
    }
    units_ = end;
  }
  return true;
}

}  // namespace catena::runtime
