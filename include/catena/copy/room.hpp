// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/types.hpp>

/// Kernels include this file.
namespace catena::copy {

/// The place that a packet's bytes have in a staging buffer: slot bytes [slot_begin, slot_begin + bytes).
struct Room {
  u32 begin;  ///< from the start of the frames region; congruent to slot_begin modulo 16
  u16 slot_begin;
  u16 bytes;
};
static_assert(sizeof(Room) == 8);

}  // namespace catena::copy
