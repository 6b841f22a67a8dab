// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/classify/classify.layout.hpp"

/// Searches the bit vectors. `Tables` has the members of State with arrays to index, but row_words() for `rows`, which
/// has fewer than 2^32 words, and lowest_bit(u32). The kernel passes checked device pointers, the tests plain arrays.
namespace catena::classify {

/// The row of an address: at most four dependent loads, one per byte.
template <typename Trie>
inline u32 row_of_address(Trie const& trie, u32 address) {
  u32 entry = trie[address >> 24];
  for (u32 shift = 24; shift != 0 && (entry & kNodeFlag) != 0;) {
    shift -= 8;
    entry = trie[static_cast<u64>(entry & ~kNodeFlag) * kNodeEntries + ((address >> shift) & 0xFFU)];
  }
  return entry;
}

/// Position of the first rule that matches all five fields, or kNoRule. Reads only words that no row's summary rules
/// out.
template <typename Tables>
inline i32 find_rule(Tables const& tables, Key const& key) {
  const u32 stride = tables.summary_words + tables.words;
  const u32 src = row_of_address(tables.src_trie, key.src) * stride;
  const u32 dst = row_of_address(tables.dst_trie, key.dst) * stride;
  const u32 sport = (key.has_ports != 0 ? tables.sport_rows[key.sport] : tables.no_ports_row) * stride;
  const u32 dport = (key.has_ports != 0 ? tables.dport_rows[key.dport] : tables.no_ports_row) * stride;
  const u32 protocol = tables.protocol_rows[key.protocol] * stride;
  auto&& rows = tables.row_words();
  const auto all_rows_at = [&](u32 i) {
    return rows[src + i] & rows[dst + i] & rows[sport + i] & rows[dport + i] & rows[protocol + i];
  };
  for (u32 group = 0; group < tables.summary_words; ++group) {
    for (u32 candidates = all_rows_at(group); candidates != 0; candidates &= candidates - 1) {
      const u32 word = group * 32 + tables.lowest_bit(candidates);
      const u32 matches = all_rows_at(tables.summary_words + word);
      if (matches != 0) {
        return static_cast<i32>(word * 32 + tables.lowest_bit(matches));
      }
    }
  }
  return kNoRule;
}

}  // namespace catena::classify
