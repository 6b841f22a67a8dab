// SPDX-License-Identifier: Apache-2.0
#include "pipeline/launch_filler.hpp"

#include <utility>

namespace catena::runtime {

memory::Unit* LaunchFiller::take() { return next_ != nullptr ? std::exchange(next_, nullptr) : in_->pop(); }

void LaunchFiller::begin(DeviceLaunch& launch) {
  launch_ = &launch;
  launch_->begin(launches_++, DeviceLaunch::Clock::now());
}

bool LaunchFiller::fill(DeviceUse const& use) {
  bool worked = false;
  while (for_host_ == nullptr) {
    memory::Unit* const unit = take();
    if (unit == nullptr) {
      break;
    }
    if (unit->host_fallback || use.is_other(unit->device_epoch)) {
      for_host_ = unit;
    } else if (!launch_->has_room_for(*unit)) {
      next_ = unit;
      break;
    } else {
      launch_->add(*unit);
      worked = true;
    }
  }
  launch_->close_group();
  return worked;
}

DeviceLaunch* LaunchFiller::release() { return std::exchange(launch_, nullptr); }

void LaunchFiller::divert() {
  if (for_host_ == nullptr) {
    for_host_ = take();
  }
}

}  // namespace catena::runtime
