// SPDX-License-Identifier: Apache-2.0
#include "sharder.hpp"

#include <catena/core/time.hpp>
#include <catena/packet/icmp_error.hpp>

#include <variant>

namespace catena::nat {
std::optional<std::uint32_t> NatSharder::shard_of(packet::Packet const& packet) {
  const Arrival arrival = classify(packet, shards_->config().realms);
  switch (arrival.kind) {
    case Kind::kUntouched:
    case Kind::kSpoofed:
      return std::nullopt;
    case Kind::kToInside:
      return shards_->shard_of_inside(arrival.destination.address);
    case Kind::kIcmpError:
      return shard_of_error(packet, arrival);
    default:
      return arrival.is_outbound ? shards_->shard_of_inside(arrival.source.address) : shard_of_inbound(packet, arrival);
  }
}

/// A hairpinned error is about two mappings; it goes where other outbound ones do.
std::optional<std::uint32_t> NatSharder::shard_of_error(packet::Packet const& packet, Arrival const& arrival) const {
  const std::variant<packet::Quote, packet::QuoteProblem> read = packet::read_quote(packet);
  packet::Quote const* quote = std::get_if<packet::Quote>(&read);
  if (quote == nullptr) {
    return std::nullopt;
  }
  return arrival.is_outbound ? shards_->shard_of_inside(quote->flow.destination.v4())
                             : shards_->shard_of_external(sender_of(*quote));
}

std::optional<std::uint32_t> NatSharder::shard_of_inbound(packet::Packet const& packet, Arrival const& arrival) {
  if (packet.is(packet::kFragment)) {
    return shard_of_fragment(packet, arrival);
  }
  return shards_->shard_of_external(arrival.destination);  // port 0 of what has none is nobody's
}

std::optional<std::uint32_t> NatSharder::shard_of_fragment(packet::Packet const& packet, Arrival const& arrival) {
  const std::uint64_t now_s = clock_.advance(packet.arrival_ns()) / kNsPerSecond;
  if (arrival.kind == Kind::kLaterFragment) {
    return first_fragments_.find(datagram_key(packet), now_s);
  }
  const std::optional<std::uint32_t> shard = shards_->shard_of_external(arrival.destination);
  if (shard) {
    first_fragments_.remember(datagram_key(packet), *shard, now_s);
  }
  return shard;
}

}  // namespace catena::nat
