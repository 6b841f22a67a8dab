// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>
#include <catena/packet/packet_clock.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "arrival.hpp"
#include "fragment_table.hpp"
#include "shards.hpp"

namespace catena::nat {

/// Assigns each packet to the NAT that has, or will make, the mapping for its translation.
///
///   outbound       the shard of the inside host that sent it; also for a hairpinned packet
///   inbound        the shard that owns its destination port, or the identifier of its echo
///   to inside      the shard of the host, as for packets sent by that host
///   ICMP errors    by the quoted datagram: regardless of its sender, an error concerns the mapping of one host
///   fragments      outbound ones have their host; a later inbound one follows the first, which is remembered as in
///                  FragmentTable
///
/// Other packets are not translated, or are dropped by any shard. Thread rule: one thread at a time, besides those of
/// the NATs.
class NatSharder final : public nf::Sharder {
 public:
  explicit NatSharder(std::shared_ptr<const Shards> shards) : shards_(std::move(shards)) {}

  std::optional<std::uint32_t> shard_of(packet::Packet const& packet) override;

 private:
  std::optional<std::uint32_t> shard_of_error(packet::Packet const& packet, Arrival const& arrival) const;
  std::optional<std::uint32_t> shard_of_inbound(packet::Packet const& packet, Arrival const& arrival);
  std::optional<std::uint32_t> shard_of_fragment(packet::Packet const& packet, Arrival const& arrival);

  std::shared_ptr<const Shards> shards_;
  DatagramTable<std::uint32_t> first_fragments_;  // the shards of first fragments
  packet::PacketClock clock_;                     // of inbound fragments
};

}  // namespace catena::nat
