// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>
#include <catena/kernel/fault.hpp>

/// Longest-prefix match: the part shared by host and kernels.
namespace catena::lpm {

/// Number 0 of the next hops means "no route".
inline constexpr u32 kNoHop = 0;

/// A DIR-24-8 table (Gupta, Lin, McKeown: "Routing lookups in hardware at memory access speeds", INFOCOM 1998): tbl24
/// has one entry per /24, tbl8 one group of 256 entries per /24 with longer prefixes. An entry is a next hop, or with
/// its top bit set the number of a group. Entries have 2 bytes if next hops and groups allow it.
template <typename Entry>
struct LookupTable {
  kernel::StateArray<Entry> tbl24;  ///< [1 << 24]
  kernel::StateArray<Entry> tbl8;   ///< [groups][256]
};
template <typename Entry>
inline constexpr Entry kGroupFlag = static_cast<Entry>(Entry{1} << (sizeof(Entry) * 8 - 1));

/// The table in one of both widths, as in the state of a kernel.
struct LookupState {
  LookupTable<u16> narrow;  ///< empty if `wide` is used
  LookupTable<u32> wide;
  u64 is_wide;
};
static_assert(sizeof(LookupState) == 72);

}  // namespace catena::lpm
