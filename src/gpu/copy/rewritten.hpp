// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/packet/batch.hpp>

#include <cstdint>

#include "gpu/copy/shared_buffer.hpp"
#include "gpu/device/device.hpp"

namespace catena::copy {

/// Enqueues copies of the payloads of marked packets (Packet::mark_rewritten()) to their twins, and clears the marks;
/// ADR 0011. Belongs before a shared step's move to the device, so that the device holds the data expected by the plan
/// for every packet. Adjacent packets with payloads of equal size at the same place share one copy.
/// Precondition: the host has the newest payload of every marked packet. The payloads must not change until the copies
/// are done.
/// Returns the moved bytes. Errors: as device::Stream::copy_rows_to_device().
Result<std::uint64_t> enqueue_rewritten(device::Stream& stream, SharedBuffer& shared, packet::Batch const& batch);

}  // namespace catena::copy
