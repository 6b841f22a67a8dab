// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// What host and kernels share about accesses out of bounds.
namespace catena::kernel {

enum AddressSpace : u32 {
  kAddressColumns = 0,
  kAddressFrames = 1,
  kAddressResults = 2,
  kAddressState = 3,
  kAddressSpill = 4,
  kAddressLocal = 5
};

/// Written by the kernel at the start of the output buffer. Of several faults of one launch one is described: the last
/// of the work-item that was the first to end.
/// Of one work-item 255 are counted at most.
struct FaultReport {
  u32 count;
  u32 packet;         ///< row of the batch
  u32 address_space;  ///< AddressSpace
  u32 reserved;
  u64 offset;  ///< bytes from the start of what the pointer may reach
  u64 size;    ///< bytes that it may reach
};
static_assert(sizeof(FaultReport) == 32);

/// An array in an NF's state: bytes from the start of the state, and elements. The same struct on host and device.
template <typename T>
struct StateArray {
  u64 offset;
  u64 count;
};

/// Where the variable-length bytes of a packet are among the frames: [begin, begin + length), with headroom
/// free bytes before and tailroom free bytes after.
struct Extent {
  u32 begin;
  u16 length;
  u16 reserved;
};
static_assert(sizeof(Extent) == 8);

/// Free bytes around each staged frame, and where frame bytes start: 2 more than a multiple of 16, so that the IPv4
/// header of an untagged frame is aligned to 16.
inline constexpr u32 kFrameShift = 2;

}  // namespace catena::kernel
