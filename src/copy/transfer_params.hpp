// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

#include "core/transfer.hpp"

/// What the host and the transfer kernels share. Kernels include this file.
namespace catena::copy {

/// A launch buffer moves to the device by these.
struct alignas(16) UploadBlock {
  u64 low;
  u64 high;
};

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

/// Bytes of the buffers of a transfer kernel, by value; see kernel::LaunchSizes.
struct TransferSizes {
  u64 batch;
  u64 out;
  u64 shared;
  u64 pool;
  u64 local;
};
static_assert(sizeof(TransferSizes) == 40);

/// Likewise of an upload.
struct UploadSizes {
  u64 to;
  u64 from;
  u64 local;
};
static_assert(sizeof(UploadSizes) == 24);

}  // namespace catena::copy
