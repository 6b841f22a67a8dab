// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// Kernels include this file.
namespace catena::copy {

/// The place of a packet's bytes in a staging buffer: slot bytes [slot_begin, slot_begin + bytes).
struct StagingExtent {
  u32 begin;  ///< from the start of the frames; congruent to slot_begin modulo 16
  u16 slot_begin;
  u16 bytes;
};
static_assert(sizeof(StagingExtent) == 8);

}  // namespace catena::copy
