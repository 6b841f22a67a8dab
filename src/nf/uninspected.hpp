// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/counter.hpp>
#include <catena/packet/batch.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Packets that pass or drop without inspection by an NF, by reason and EtherType.
namespace catena::nf {

/// What a count of UninspectedCounts is about. The words are stable: metric labels, and members of the report.
struct UninspectedKind {
  std::string_view reason;      ///< "not_ipv4", "link_local", "malformed", "truncated", "header", "tunnel_gre" ...
  std::string_view ether_type;  ///< "ipv6", "arp" ..., "other"
  std::string_view verdict;     ///< "pass"; "drop"; "outer": the NF inspected the headers outside of a tunnel only
};

/// Fixed in number, so that no traffic makes more of them. One writer thread; any thread reads.
struct UninspectedCounts {
  static constexpr std::size_t kEtherTypes = 27;
  static constexpr std::size_t kOtherReasons = 3;  ///< of IPv4 packets
  static constexpr std::size_t kTunnels = 6;
  /// One kind for passed and one for dropped packets of each: EtherTypes of not_ipv4, of link_local, other reasons.
  static constexpr std::size_t kPairs = 2 * kEtherTypes + kOtherReasons;
  static constexpr std::size_t kKinds = 2 * kPairs + kTunnels;

  /// Precondition: `number` < kKinds.
  static UninspectedKind kind(std::size_t number);
  /// Counts a packet that the NF did not get, by its LayerFlags and the EtherType after its tags.
  void add(packet::Packet const& packet, bool is_dropped);
  /// Counts a packet of a tunnel that the NF got. Precondition: not Tunnel::kNone.
  void add(packet::Tunnel tunnel);
  void count(std::size_t kind, std::uint64_t packets) {
    counts[kind] += packets;
    total += packets;
  }

  std::array<Counter, kKinds> counts;
  Counter total;  ///< of `counts`; written after them
};

}  // namespace catena::nf
