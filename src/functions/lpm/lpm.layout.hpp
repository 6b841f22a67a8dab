// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>
#include <catena/kernel/fault.hpp>

/// What the host and kernels share of a longest-prefix match.
namespace catena::lpm {

/// Number 0 of the next hops stands for "no route".
inline constexpr u32 kNoHop = 0;

/// A DIR-24-8 table (Gupta, Lin, McKeown: "Routing lookups in hardware at memory access speeds", INFOCOM 1998): tbl24
/// has an entry for each /24, tbl8 has groups of 256 entries for those /24 that hold longer prefixes. An entry is a
/// next hop, or with its top bit set the number of a group. Entries have 2 bytes where next hops and groups allow it.
template <typename Entry>
struct LookupTable {
  kernel::StateArray<Entry> tbl24;  ///< [1 << 24]
  kernel::StateArray<Entry> tbl8;   ///< [groups][256]
};
template <typename Entry>
inline constexpr Entry kGroupFlag = static_cast<Entry>(Entry{1} << (sizeof(Entry) * 8 - 1));

/// The table of one of both widths, as the state of a kernel has it.
struct LookupState {
  LookupTable<u16> narrow;  ///< empty if `wide` is used
  LookupTable<u32> wide;
  u64 is_wide;
};
static_assert(sizeof(LookupState) == 72);

}  // namespace catena::lpm
