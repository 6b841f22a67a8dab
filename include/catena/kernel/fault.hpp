// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// Types shared by host and kernels for accesses out of bounds.
namespace catena::kernel {

enum AddressSpace : u32 {
  kAddressColumns = 0,
  kAddressFrames = 1,
  kAddressResults = 2,
  kAddressState = 3,
  kAddressSpill = 4,
  kAddressLocal = 5
};

/// Written by the kernel at the start of the output buffer. Describes one fault of a launch, the last one of the first
/// work-item to end.
/// At most 255 faults are counted per work-item.
struct FaultReport {
  u32 count;
  u32 packet;         ///< row of the batch
  u32 address_space;  ///< AddressSpace
  u32 reserved;
  u64 offset;  ///< bytes from the start of the pointer's range
  u64 size;    ///< bytes of this range
};
static_assert(sizeof(FaultReport) == 32);

/// An array in an NF's state: offset in bytes from the start of the state, and number of elements. The same struct on
/// host and device.
template <typename T>
struct StateArray {
  u64 offset;
  u64 count;
};

/// Position of a packet's variable-length bytes in the frames: [begin, begin + length), with headroom free bytes before
/// and tailroom free bytes after.
struct Extent {
  u32 begin;
  u16 length;
  u16 reserved;
};
static_assert(sizeof(Extent) == 8);

/// Free bytes around each staged frame. Frame bytes start at 2 more than a multiple of 16, so that the IPv4 header of
/// an untagged frame is aligned to 16.
inline constexpr u32 kFrameShift = 2;

}  // namespace catena::kernel
