// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/slot.hpp>

/// The layout of the shared buffer for host and kernels: the twins of the packet pool's slots, then the packets'
/// metadata, one array per field.
namespace catena::kernel {

/// Start of the array of a metadata field in a shared buffer, in bytes per slot; kMetaLayers comes first. Multiplied by
/// the slots it is a multiple of 8 for every valid pool size. A kernel assigns it to a constant first, because a
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

/// The start of a launch buffer: the values that differ between launches. Kernels get the others by value, so that a
/// device can record kernels once and replay them.
struct alignas(16) LaunchHeader {
  u32 rows;
  u32 processed;      ///< rows below this number are the NF's; their output columns written by it are left alone
  u32 upload_blocks;  ///< of this launch buffer, in total
  u32 reserved;
};
static_assert(sizeof(LaunchHeader) == 16);

/// Rows of each column in a launch of `rows` rows.
constexpr u32 padded_rows(u32 rows) { return (rows + 15) / 16 * 16; }

}  // namespace catena::kernel
