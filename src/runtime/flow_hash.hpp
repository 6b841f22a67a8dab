// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>

#include <cstdint>

namespace catena::runtime {

/// Which packets belong together: a number that both directions of a TCP, UDP or ICMP echo flow have in common, and the
/// ICMP errors about it (by what they quote). Fragments go by their two addresses alone, as only the first has ports;
/// so do ICMP errors whose quote cannot be read, and datagrams of other protocols. 0 for what is not IPv4. `key`
/// changes all of it: senders choose addresses and ports, and who does not know the key cannot choose the number.
/// Pure.
std::uint32_t flow_hash(packet::Packet const& packet, std::uint64_t key);

/// One of `shards` (at least 1) parts, by the hash.
constexpr std::uint32_t shard_of(std::uint32_t hash, std::uint32_t shards) {
  return static_cast<std::uint32_t>(std::uint64_t{hash} * shards >> 32U);
}

}  // namespace catena::runtime
