// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/text.hpp>
#include <catena/packet/flow_key.hpp>

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hash.hpp"

namespace catena::lb {

/// One end of a flow with IPv4 addresses, compressed for EndpointIndex. Numbers in host order.
struct Endpoint {
  std::uint32_t address = 0;
  std::uint16_t port = 0;
  std::uint8_t protocol = 0;  ///< packet::kProtocolTcp or kProtocolUdp

  bool operator==(Endpoint const&) const = default;
  std::uint64_t key() const { return std::uint64_t{address} << 32 | std::uint64_t{port} << 16 | protocol; }
};

/// The ends of a flow of TCP or UDP. Precondition: IPv4 addresses.
inline Endpoint sender_of(packet::FlowKey const& flow) { return {flow.source.v4(), flow.source_port, flow.protocol}; }
inline Endpoint receiver_of(packet::FlowKey const& flow) {
  return {flow.destination.v4(), flow.destination_port, flow.protocol};
}
/// Precondition: both ends have one protocol.
inline packet::FlowKey flow_between(Endpoint const& source, Endpoint const& destination) {
  return packet::FlowKey::of_v4(source.address, destination.address, source.port, destination.port, source.protocol);
}

/// "203.0.113.10:80/tcp"
inline std::string to_string(Endpoint const& endpoint) {
  return concat(packet::to_string(packet::Address::of_v4(endpoint.address), endpoint.port),
                endpoint.protocol == packet::kProtocolTcp ? "/tcp" : "/udp");
}

/// Map from endpoints to numbers: open addressing in an at most half full array, filled once, small enough to stay in
/// the first-level cache.
class EndpointIndex {
 public:
  static constexpr std::uint16_t kNone = 0xFFFF;

  struct Entry {
    Endpoint endpoint;
    std::uint16_t number;  ///< below kNone
  };

  EndpointIndex() : EndpointIndex(std::span<const Entry>()) {}
  /// The first of several entries with the same endpoint wins.
  explicit EndpointIndex(std::span<const Entry> entries)
      : slots_(std::bit_ceil(2 * entries.size() + 1), Slot{0, kNone}), mask_(slots_.size() - 1) {
    for (Entry const& entry : entries) {
      Slot& slot = slots_[position_of(entry.endpoint.key())];
      if (slot.number == kNone) {
        slot = {entry.endpoint.key(), entry.number};
      }
    }
  }

  /// The number of `endpoint`, or kNone.
  std::uint16_t find(Endpoint const& endpoint) const { return slots_[position_of(endpoint.key())].number; }

 private:
  struct Slot {
    std::uint64_t key;
    std::uint16_t number;  ///< kNone: free
  };

  /// Position of `key`, or of the free slot for it.
  std::size_t position_of(std::uint64_t key) const {
    std::size_t at = mix(key) & mask_;
    while (slots_[at].number != kNone && slots_[at].key != key) {
      at = (at + 1) & mask_;
    }
    return at;
  }

  std::vector<Slot> slots_;
  std::size_t mask_;
};

}  // namespace catena::lb
