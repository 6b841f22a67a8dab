// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>
#include <catena/nf/packet_clock.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "arrival.hpp"
#include "fragment_table.hpp"
#include "shards.hpp"

namespace catena::nat {

/// Says which of several NATs sees a packet: the one that has, or will make, the mapping that translates it.
///
///   outbound       the shard of the inside host that sent it; also of a hairpinned packet
///   inbound        the shard that gives out its destination port, or the identifier of its echo
///   to inside      the shard of the host, as what that host sends
///   ICMP errors    by the datagram that they quote: whoever sent the error, it is about the mapping of one host
///   fragments      outbound ones have their host; an inbound later one follows its first, which is remembered as
///                  FragmentTable does
///
/// The rest is not translated, or dropped by any. One thread at a time, beside those of the NATs.
class NatDivider final : public nf::Divider {
 public:
  explicit NatDivider(std::shared_ptr<const Shards> shards) : shards_(std::move(shards)) {}

  std::optional<std::uint32_t> shard_of(packet::Packet const& packet) override;

 private:
  std::optional<std::uint32_t> shard_of_error(packet::Packet const& packet, Arrival const& arrival) const;
  std::optional<std::uint32_t> shard_of_inbound(packet::Packet const& packet, Arrival const& arrival);
  std::optional<std::uint32_t> shard_of_fragment(packet::Packet const& packet, Arrival const& arrival);

  std::shared_ptr<const Shards> shards_;
  DatagramTable<std::uint32_t> first_fragments_;  // the shards that they went to
  nf::PacketClock clock_;                         // of inbound fragments
};

}  // namespace catena::nat
