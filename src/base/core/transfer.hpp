// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Transfers between host and device. Kernels include this file.
namespace catena {

enum class Direction : unsigned { kToDevice, kToHost };

/// How bytes cross the bus.
enum class TransferMethod : unsigned {
  kStaged,   ///< the CPU copies to or from a pinned staging buffer, which one bulk copy moves; a kernel copies on the
             ///< device
  kStrided,  ///< 2-D copies over equally spaced slots: whole frames only, each as long as the longest
  kGather,   ///< a kernel reads (to the device) or writes (to the host) the packet pool
};

}  // namespace catena
