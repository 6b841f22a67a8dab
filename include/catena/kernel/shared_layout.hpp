// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/copy/staging_extent.hpp>
#include <catena/core/transfer.hpp>
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

using copy::StagingExtent;

/// The front of a launch buffer: what differs from one launch to the next. Kernels get the rest by value, so that a
/// device can record them once and run them again.
struct alignas(16) LaunchHeader {
  u32 rows;
  u32 processed;      ///< rows in front of this one are the NF's; their output columns that it writes are left alone
  u32 upload_blocks;  ///< of this launch buffer, in all
  u32 reserved;
};
static_assert(sizeof(LaunchHeader) == 16);

/// A launch buffer moves to the device by these.
struct alignas(16) UploadBlock {
  u64 low;
  u64 high;
};

/// Rows of every column of a launch of `rows` rows.
constexpr u32 padded_rows(u32 rows) { return (rows + 15) / 16 * 16; }

/// What a transfer kernel is told; by value. Offsets are from the start of the launch buffer, that of the flags moving
/// out from the start of the out buffer.
struct TransferParams {
  u64 head_offset;     ///< of the LaunchHeader; moving in, columns of the moved fields follow it
  u64 slots_offset;    ///< slot numbers, u32 per row: here, and `slots_row_bytes` further on for each padded row
  u64 extents_offset;  ///< kStaged: a StagingExtent per row
  u64 frames_offset;
  u64 frames_bytes;
  u64 flags_offset;  ///< moving out: fault flags, one byte per row; faulted rows stay where they are. Columns follow
  u32 slots_row_bytes;
  u32 slots;
  TransferMethod body;  ///< kStrided where there is none: the kernel leaves it alone
  u32 fused_upload;     ///< moving in, 1: the launch buffer is still at `out`, in memory of the host, and the kernel
                        ///< brings it
  u32 lane_bits;        ///< log2 of the work-items per packet
  u32 reserved;
};
static_assert(sizeof(TransferParams) == 72);

}  // namespace catena::kernel
