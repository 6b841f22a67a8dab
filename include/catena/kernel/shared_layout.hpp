// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/copy/room.hpp>
#include <catena/packet/slot.hpp>

/// The shared buffer as host and kernels see it: the twins of the packet pool's slots, then the packets' metadata, one
/// array per field.
namespace catena::kernel {

/// Where the array of a metadata field starts in a shared buffer, in bytes a slot; kMetaLayers stands first. Times
/// slots it is a multiple of 8 for every number of slots that a pool may have. A kernel makes a constant of it first: a
/// compiler may leave the loop in.
constexpr u32 shared_meta_prefix(u32 field) {
  u32 bytes = packet::kSlotBytes;
  for (u32 other = packet::kMetaLayers; other != field; --other) {
    bytes += packet::field_size(other);
  }
  return bytes;
}
constexpr u64 shared_buffer_bytes(u64 slots) {
  return slots * (shared_meta_prefix(packet::kMetaVerdict) + packet::field_size(packet::kMetaVerdict));
}

using copy::Room;

/// How a packet's payload or frame crosses the bus.
enum BodyRoute : u32 {
  kNoBody = 0,      ///< not at all, or by copies that the host enqueues
  kBodyStaged = 1,  ///< through the launch's own buffer
  kBodyMapped = 2,  ///< the transfer kernel reads or writes the packet pool
};

/// What a transfer kernel is told; by value. Offsets are from the start of the batch region, moving out those of
/// columns and flags from the start of the out region.
struct TransferParams {
  u32 rows;
  u32 decided;  ///< rows in front of this one are the NF's; their output columns that it writes are left alone
  u32 padded;   ///< rows of every column
  u32 slots;
  u64 slots_offset;    ///< slot numbers, u32 a row
  u64 columns_offset;  ///< columns of the moved fields
  u64 rooms_offset;    ///< kBodyStaged: a Room a row
  u64 frames_offset;
  u64 frames_bytes;
  u64 flags_offset;  ///< moving out: fault flags, a byte a row; rows that strayed stay where they are
  u32 body;          ///< BodyRoute
  u32 reserved;
};
static_assert(sizeof(TransferParams) == 72);

/// What the kernel that copies a launch's region is told; by value.
struct RegionParams {
  u32 blocks;  ///< of 16 bytes, from the start of both buffers
};

}  // namespace catena::kernel
