// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/fault.hpp>
#include <catena/kernel/types.hpp>

/// What the firewall's host code and its kernel share.
namespace catena::firewall {

/// `rule` of a packet that no rule matches.
inline constexpr i32 kNoRule = -1;

struct FirewallResult {
  i32 rule;  ///< position of the first rule that matches, or kNoRule
};
static_assert(sizeof(FirewallResult) == 4);

/// What classification looks at, in host order. The ports count only if has_ports is not 0.
struct Key {
  u32 src;
  u32 dst;
  u16 sport;
  u16 dport;
  u8 protocol;
  u8 has_ports;
  u16 reserved;
};
static_assert(sizeof(Key) == 16);

/// A trie entry with this bit set is the number of a node, else of a row.
inline constexpr u32 kNodeFlag = 0x80000000U;
inline constexpr u32 kNodeEntries = 256;

/// The rules as bit vectors (Lakshman and Stiliadis, "High-speed policy-based packet forwarding using efficient
/// multi-dimensional range matching", SIGCOMM 1998), aggregated one level (Baboescu and Varghese, "Scalable packet
/// classification", SIGCOMM 2001). Each field maps its value to a row; bit i of a row says that rule i takes the value.
/// A row is `summary_words` words of summary, then `words` words of rules; bit i of the summary: word i is not zero.
struct State {
  kernel::StateArray<u32> src_trie;       ///< [nodes][256], one address byte a level; node 0 is the root
  kernel::StateArray<u32> dst_trie;       ///< the same
  kernel::StateArray<u32> sport_rows;     ///< [65536]
  kernel::StateArray<u32> dport_rows;     ///< [65536]
  kernel::StateArray<u32> protocol_rows;  ///< [256]
  kernel::StateArray<u32> rows;           ///< [rows][summary_words + words]
  u32 words;
  u32 summary_words;
  u32 no_ports_row;  ///< stands for both ports of a packet without ports
  u32 reserved;
};
static_assert(sizeof(State) == 112);

}  // namespace catena::firewall
