// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

namespace catena::kernel {

/// Parameters of one launch; passed to the kernel by value. The same struct on host and device.
struct LaunchParams {
  u32 count;          ///< packets; a shared step has them in the LaunchHeader
  u32 padded;         ///< count rounded up to a multiple of 16: rows of every column; likewise
  u64 frames_offset;  ///< bytes from the start of this NF's part of the launch buffer to the frames
  u64 frames_bytes;
  u64 out_offset;    ///< bytes from the start of the out buffer, which may be the launch buffer, to the kernel's output
  u64 batch_offset;  ///< bytes from the start of the launch buffer to this NF's part of it; 0 unless NFs share it
  u64 state_bytes;
  u64 spill_bytes;
  u64 spill_row_bytes;  ///< shared step: bytes from one packet's spill area to the next
  u32 local_bytes;      ///< local memory of a work-group
  u32 slots;            ///< shared step: slots of the shared buffer
};
static_assert(sizeof(LaunchParams) == 72);

/// Sizes in bytes of a launch's buffers and of its local memory, by value. Filled in by the device layer; LaunchParams
/// are not trusted beyond them. The same struct on host and device.
struct LaunchSizes {
  u64 batch;
  u64 out;
  u64 state;
  u64 spill;
  u64 shared;
  u64 local;
};
static_assert(sizeof(LaunchSizes) == 48);

/// Whether `bytes` bytes from `offset` on are inside a buffer of `size` bytes.
constexpr bool lies_in(u64 offset, u64 bytes, u64 size) { return offset <= size && bytes <= size - offset; }

}  // namespace catena::kernel
