// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/device_binding.hpp"
#include "pipeline/device_launch.hpp"

#include <chrono>
#include <cstddef>

namespace catena::runtime {

/// Ends launches not completed by a lost device, one at a time: by the NF's CPU implementation where the host has
/// the packets or can get them, else by dropping the packets as device_failed. If one of several units in a group is
/// lost, the whole group is. One thread.
class LaunchSettlement {
 public:
  /// `limit`: maximum time until nothing of a failed launch runs any more.
  explicit LaunchSettlement(std::chrono::nanoseconds limit) : limit_(limit) {}

  /// Call for the same launch of `binding`, whose device is out of use, until true: its units can then be passed on,
  /// without data on a device. If the device may still write to their packets, they are quarantined. A device
  /// over the limit is given up. Never waits.
  bool poll(DeviceLaunch& launch, DeviceBinding& binding);

 private:
  bool drain(DeviceLaunch& launch, DeviceBinding& binding);
  bool settle_groups(DeviceLaunch& launch, DeviceBinding& binding, bool is_quarantined);

  std::chrono::nanoseconds limit_;
  // of the current launch
  bool may_still_run_ = false;
  std::size_t groups_ = 0;  ///< settled
  std::size_t units_ = 0;   ///< settled, or waiting only for others of their group
};

}  // namespace catena::runtime
