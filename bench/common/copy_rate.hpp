// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"

namespace catena::bench {

/// Bytes per second of large bulk copies from and to pinned memory, per direction, while both directions are busy: the
/// upper limit of all bus transfers. Takes about `seconds`. Errors: the device's.
Result<double> copy_bytes_per_s(device::Device& device, double seconds);

/// Bytes per second of consecutive copies of `bytes` to the device, from pinned or pageable memory. Takes about
/// `seconds`. Errors: the device's.
Result<double> copy_in_bytes_per_s(device::Device& device, std::size_t bytes, bool pinned, double seconds);

}  // namespace catena::bench
