// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>
#include <catena/kernel/fault.hpp>

/// Shared by the host code and the kernel of remark.
namespace catena::remark {

inline constexpr u32 kCodePoints = 64;

/// Table value: packets with this code point are dropped.
inline constexpr u8 kDropped = 0xFF;

/// Header of the NF's state on a device.
struct State {
  kernel::StateArray<u8> table;  ///< [kCodePoints] new code point, or kDropped
};
static_assert(sizeof(State) == 16);

struct RemarkResult {
  u32 dropped;  ///< 0 or 1
};
static_assert(sizeof(RemarkResult) == 4);

}  // namespace catena::remark
