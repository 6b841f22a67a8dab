// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/packet/batch.hpp>

#include <cstdint>

#include "copy/shared_buffer.hpp"
#include "device/device.hpp"

namespace catena::copy {

/// Enqueues copies of the payloads of marked packets (Packet::mark_rewritten()) to their twins, and takes the marks
/// away; ADR 0011. Belongs in front of a shared step's move to the device, which then finds on the device what the plan
/// says, for every packet. Neighbours with payloads of the same size at the same place take one copy together.
/// Precondition: the host has the newest payload of every marked packet. Like all that is moved, they must not change
/// until the copies are done.
/// Returns the bytes that are moved. Errors: as device::Stream::copy_rows_to_device().
Result<std::uint64_t> enqueue_rewritten(device::Stream& stream, SharedBuffer& shared, packet::Batch const& batch);

}  // namespace catena::copy
