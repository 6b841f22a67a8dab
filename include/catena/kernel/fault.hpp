// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/types.hpp>

/// What host and kernels share about accesses that strayed.
namespace catena::kernel {

enum Region : u32 {
  kRegionColumns = 0,
  kRegionFrames = 1,
  kRegionResults = 2,
  kRegionState = 3,
  kRegionSpill = 4,
  kRegionLocal = 5
};

/// Written by the kernel at the start of the output region. Of several faults of one launch the first to be counted
/// is described.
struct FaultReport {
  u32 count;
  u32 packet;  ///< row of the batch
  u32 region;  ///< Region
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

/// Where the variable-length bytes of a packet stand in the frames region: [begin, begin + length), with headroom
/// free bytes before and tailroom free bytes behind.
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
