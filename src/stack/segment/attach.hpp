// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/ipc/mapping.hpp"
#include "stack/segment/segment.hpp"

/// The first words between an application and the stack, over the application's connection: one frame from the stack,
/// with the segment's descriptor or with an error. After it each end sends bytes to wake the other one.
namespace catena::stack {

/// Number of the frame, and of the protocol: another layout of SharedSegment is another number.
inline constexpr std::uint32_t kAttached = 0xCA7E0001;
inline constexpr std::uint32_t kRefused = 0xCA7E0002;

/// Body of kAttached; the frame has the segment's memory.
struct AttachedBody {
  SegmentShape shape;
};
/// Body of kRefused: the stack takes no application now.
struct RefusedBody {
  std::int32_t error;  ///< of errno.h
};

/// A segment's memory, at both ends. Its pages get memory as connections use them: most of a segment is FIFOs of
/// sessions that it may have. Errors of ipc::Mapping::map().
Result<ipc::Mapping> map_segment(FileDescriptor memory, SegmentShape const& shape);

}  // namespace catena::stack
