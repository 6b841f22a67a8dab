// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

#include "base/core/transfer.hpp"

/// Types shared by the host and the transfer kernels. Kernels include this file.
namespace catena::copy {

/// A launch buffer is uploaded in blocks of this type.
struct alignas(16) UploadBlock {
  u64 low;
  u64 high;
};

/// Parameters of a transfer kernel, passed by value. Offsets are from the start of the launch buffer; moving out,
/// flags_offset is from the start of the out buffer.
struct TransferParams {
  u64 head_offset;     ///< of the LaunchHeader; moving in, the columns of the moved fields follow
  u64 slots_offset;    ///< slot numbers, u32 per row; plus `slots_row_bytes` for each padded row
  u64 extents_offset;  ///< kStaging: a StagingExtent per row
  u64 frames_offset;
  u64 frames_bytes;
  u64 flags_offset;  ///< moving out: fault flags, one byte per row, then columns; faulted rows are not moved
  u32 slots_row_bytes;
  u32 slots;
  KernelPath body;   ///< kNone also without a body
  u32 fused_upload;  ///< moving in, 1: the launch buffer is still in host memory at `out`, and the kernel uploads it
  u32 lane_bits;     ///< log2 of the work-items per packet
  u32 reserved;
};
static_assert(sizeof(TransferParams) == 72);

/// Sizes of a transfer kernel's buffers in bytes, passed by value; see kernel::LaunchSizes.
struct TransferSizes {
  u64 batch;
  u64 out;
  u64 shared;
  u64 pool;
  u64 local;
};
static_assert(sizeof(TransferSizes) == 40);

/// The same for an upload.
struct UploadSizes {
  u64 to;
  u64 from;
  u64 local;
};
static_assert(sizeof(UploadSizes) == 24);

}  // namespace catena::copy
