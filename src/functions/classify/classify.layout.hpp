// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>
#include <catena/kernel/fault.hpp>
#include <catena/packet/layers.hpp>

/// Types shared by the firewall's host code and its kernel.
namespace catena::classify {

/// `rule` of a packet without a matching rule.
inline constexpr i32 kNoRule = -1;
/// `rule` of packets that no rule may decide, because the match of a rule with ports is unknown:
/// packet::PortsHeader::kSplit, and kCut.
inline constexpr i32 kSplitFragment = -2;
inline constexpr i32 kUnreadable = -3;

struct ClassifyResult {
  i32 rule;  ///< position of the first matching rule, or one of the constants above
};
static_assert(sizeof(ClassifyResult) == 4);

/// Input of classification, in host order. The ports count only if has_ports is not 0.
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

/// kSplitFragment, kUnreadable, or kNoRule if rules may decide the packet. kNoRule is also for any protocol but TCP and
/// UDP, and for later fragments. The ports of a datagram are in its first fragment, which is decided by them, and no
/// other passing fragment can change them. `flags`: packet::LayerFlags.
constexpr i32 refusal(u32 flags, u32 protocol) {
  const packet::PortsHeader header = packet::ports_header(flags, protocol);
  return header == packet::PortsHeader::kSplit ? kSplitFragment
         : header == packet::PortsHeader::kCut ? kUnreadable
                                               : kNoRule;
}

/// A trie entry with this bit set is the number of a node, else of a row.
inline constexpr u32 kNodeFlag = 0x80000000U;
inline constexpr u32 kNodeEntries = 256;

/// The rules as bit vectors (Lakshman and Stiliadis, "High-speed policy-based packet forwarding using efficient
/// multi-dimensional range matching", SIGCOMM 1998), aggregated one level (Baboescu and Varghese, "Scalable packet
/// classification", SIGCOMM 2001). Each field maps its value to a row; bit i of a row: rule i accepts the value. A row
/// is `summary_words` words of summary, then `words` words of rules; bit i of the summary: word i is not zero.
struct State {
  kernel::StateArray<u32> src_trie;       ///< [nodes][256], one address byte per level; node 0 is the root
  kernel::StateArray<u32> dst_trie;       ///< the same
  kernel::StateArray<u32> sport_rows;     ///< [65536]
  kernel::StateArray<u32> dport_rows;     ///< [65536]
  kernel::StateArray<u32> protocol_rows;  ///< [256]
  kernel::StateArray<u32> rows;           ///< [rows][summary_words + words]
  u32 words;
  u32 summary_words;
  u32 no_ports_row;  ///< for both ports of a packet without ports
  u32 reserved;
};
static_assert(sizeof(State) == 112);

}  // namespace catena::classify
