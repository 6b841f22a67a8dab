// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/packet/flow_key.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "functions/classify/classify.layout.hpp"
#include "functions/classify/rule.hpp"

namespace catena::classify {

/// The compressed form of a packet's flow for rules, as the kernel makes it from fields. Precondition: IPv4 addresses.
inline Key key_of(packet::PacketFlow const& flow) {
  return {.src = flow.key.source.v4(),
          .dst = flow.key.destination.v4(),
          .sport = flow.key.source_port,
          .dport = flow.key.destination_port,
          .protocol = flow.key.protocol,
          .has_ports = flow.has_ports ? u8{1} : u8{0},
          .reserved = 0};
}

/// Finds the first matching rule, on the CPU without DPDK, by a decision tree (as HyperSplit: Qi, Xu, Yang, Xue, Li:
/// "Packet classification algorithms: from theory to practice", INFOCOM 2009). A node compares one field with a value
/// and separates the rules below the value, the rules above it, and the rules on both sides. A few of the last are
/// copied to both sides. More are a third subtree, which is searched as well, unless all its rules come after a match.
/// It shares nothing with the kernel's bit vectors, so that each can verify the other.
///
/// With any overlap of the rules, each takes at most 1,152 bytes, and a lookup compares a packet with all of them at
/// most. Immutable: lookups are safe from any thread.
class RuleTree {
 public:
  /// ResourceExhausted: more than kMaxRules.
  static Result<RuleTree> create(std::span<const Rule> rules);

  /// Position of the first rule that matches all fields of the key, or kNoRule.
  i32 find(Key const& key) const;

  /// Memory use.
  std::size_t bytes() const;

 private:
  friend class RuleTreeBuilder;

  enum Field : std::uint32_t { kSrc, kDst, kSport, kDport, kProtocol, kFields };
  using Values = std::array<std::uint32_t, kFields>;

  /// A subtree. Its lowest rule number tells whether it needs to be searched.
  struct Child {
    std::uint32_t first_rule;
    std::uint32_t at;  ///< of a node, or with kLeafFlag of the first entry of a leaf
  };
  struct Node {
    std::uint32_t field;
    std::uint32_t value;  ///< rules of sides[0] accept no value above it, rules of sides[1] only such values
    std::array<Child, 2> sides;
    Child both;
  };
  /// A rule in a leaf, which lists its rules in ascending order. A range is its first value and its size minus 1.
  struct Entry {
    std::uint32_t src, src_more, dst, dst_more;
    std::uint16_t sport, sport_more, dport, dport_more;
    std::uint8_t protocol, protocol_mask;
    std::uint16_t is_last;  ///< in its leaf
    std::uint32_t rule;

    bool matches(Values const& values) const;
  };
  static_assert(sizeof(Entry) == 32);

  struct Tree {
    std::vector<Node> nodes;
    std::vector<Entry> entries;
    Child root{};
    i32 find(Values const& values) const;
  };

  Tree with_ports_;
  Tree without_ports_;  ///< the rules that match packets without ports
};

}  // namespace catena::classify
