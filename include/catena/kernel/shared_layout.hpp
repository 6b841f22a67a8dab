// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/slot.hpp>

/// The shared buffer as host and kernels see it: the twins of the packet pool's slots, then the packets' metadata, one
/// array per field.
namespace catena::kernel {

/// Where the array of a metadata field starts in a shared buffer, in bytes per slot; kMetaLayers comes first. Times
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

/// The front of a launch buffer: what differs from one launch to the next. Kernels get the rest by value, so that a
/// device can record them once and run them again.
struct alignas(16) LaunchHeader {
  u32 rows;
  u32 processed;      ///< rows in front of this one are the NF's; their output columns that it writes are left alone
  u32 upload_blocks;  ///< of this launch buffer, in all
  u32 reserved;
};
static_assert(sizeof(LaunchHeader) == 16);

/// Rows of every column of a launch of `rows` rows.
constexpr u32 padded_rows(u32 rows) { return (rows + 15) / 16 * 16; }

}  // namespace catena::kernel
