// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"

namespace catena::bench {

/// Bytes a second that large bulk copies from and to pinned memory move each way while both directions are busy: the
/// limit of everything that crosses the bus. Takes about `seconds`. Errors: the device's.
Result<double> copy_bytes_per_s(device::Device& device, double seconds);

/// Bytes a second of copies of `bytes` to the device, one after another, from pinned memory or from memory that the
/// system may move. Takes about `seconds`. Errors: the device's.
Result<double> copy_in_bytes_per_s(device::Device& device, std::size_t bytes, bool pinned, double seconds);

}  // namespace catena::bench
