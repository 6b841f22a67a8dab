// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>
#include <catena/packet/flow_key.hpp>

#include <cstdint>

namespace catena::runtime {

/// A number common to both directions of a TCP, UDP or ICMP echo flow, and to the ICMP errors about it (by their
/// quotes). Fragments are hashed by their two addresses alone, as only the first has ports; so are ICMP errors with an
/// unreadable quote, and datagrams of other protocols. 0 for packets that are not IPv4. `key` changes all numbers:
/// senders choose addresses and ports, but cannot choose the number without the key. Pure.
std::uint32_t flow_hash(packet::Packet const& packet, std::uint64_t key);
/// The same of the packets of a flow, without a packet; the key as for nf::FlowFilter.
std::uint32_t flow_hash(packet::FlowKey const& flow, std::uint64_t key);

/// One of `shards` (at least 1) parts, by the hash.
constexpr std::uint32_t shard_of(std::uint32_t hash, std::uint32_t shards) {
  return static_cast<std::uint32_t>(std::uint64_t{hash} * shards >> 32U);
}

}  // namespace catena::runtime
