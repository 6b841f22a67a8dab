// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"

namespace catena::bench {

/// Bytes a second that large bulk copies from and to pinned memory move each way while both directions are busy: the
/// limit of everything that crosses the bus. Takes about `seconds`. Errors: the device's.
Result<double> copy_bytes_per_s(device::Device& device, double seconds);

}  // namespace catena::bench
