// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// Types shared by the host and the kernel of the copy engine. Kernels include this file.
namespace catena::copy {

/// Memories of the parts of one launch at most.
inline constexpr u32 kMoveWindows = 16;

/// A part of a move: one work-group copies it.
struct MovePart {
  u64 from;  ///< offset in window `from_window`
  u64 to;    ///< offset in window `to_window`
  u32 bytes;
  u16 from_window;
  u16 to_window;
};
static_assert(sizeof(MovePart) == 24);

/// Parts of a launch at most.
inline constexpr u32 kMoveParts = 4096;

/// What host and kernel share of a launch, in host memory.
struct MoveTable {
  MovePart parts[kMoveParts];
  u32 copied[kMoveParts];  ///< MoveParams::launch, once the part is in place
};

struct MoveParams {
  u32 parts;
  u32 launch;  ///< number of the launch; not that of the table's last one
};
static_assert(sizeof(MoveParams) == 8);

/// Sizes of the kernel's buffers in bytes, passed by value; see kernel::LaunchSizes.
struct MoveSizes {
  u64 table;
  u64 windows[kMoveWindows];
  u64 local;
};
static_assert(sizeof(MoveSizes) == 16 + 8 * kMoveWindows);

}  // namespace catena::copy
