// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/fault.hpp>

/// Types shared by the host and the kernel of the NIDS.
namespace catena::match {

/// Maximum matches in a packet's result; further matches go to its spill area.
inline constexpr u32 kListedMatches = 7;

/// A match in the kernel's list: the longest pattern that ends at a position, and this position.
inline constexpr u32 match_entry(u32 pattern, u32 end) { return pattern << 16 | end; }
inline constexpr u32 pattern_of(u32 entry) { return entry >> 16; }
inline constexpr u32 end_of(u32 entry) { return entry & 0xFFFFU; }

/// One packet's result. `count` is the number of matches found, or 0 if no deciding pattern is among them. The first
/// kListedMatches are in `listed`, the others in the spill area, in no order. The CPU implementation decides at once
/// and writes kDecidedByCpu.
struct MatchResult {
  u32 count;
  u32 listed[kListedMatches];
};
static_assert(sizeof(MatchResult) == 32);
inline constexpr u32 kDecidedByCpu = 0xFFFFFFFFU;

/// Local memory of the kernel, in words: one report per work-item, then one result per packet.
inline constexpr u32 kResultWords = sizeof(MatchResult) / sizeof(u32);
inline constexpr u32 local_words(u32 group_size, u32 lanes) { return group_size + kResultWords * (group_size / lanes); }

/// One automaton (aho_corasick.hpp) in the NF's state. An absent one has class_count 0.
struct DeviceAutomaton {
  kernel::StateArray<u8> classes;   // [256]
  kernel::StateArray<u32> next;     // [states][class_count] -> row
  kernel::StateArray<u16> longest;  // [match_rows / class_count] -> pattern
  kernel::StateArray<u16> depths;   // [states]
  u32 class_count;
  u32 start;
  u32 deciding_rows;
  u32 match_rows;
};
static_assert(sizeof(DeviceAutomaton) == 80);

/// Contents to match byte by byte have one automaton, contents without regard to case another.
struct MatchState {
  DeviceAutomaton first;   ///< absent only without any contents
  DeviceAutomaton second;  ///< for the kernel `match_two`
};
static_assert(sizeof(MatchState) == 160);

}  // namespace catena::match
