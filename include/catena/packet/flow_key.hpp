// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/address.hpp>
#include <catena/packet/headers.hpp>

#include <compare>
#include <cstdint>
#include <string>

/// The flow of a packet. Thread rule: pure functions and values, any thread.
namespace catena::packet {

/// The 5-tuple. Ports in host order; 0 without ports.
struct FlowKey {
  Address source;
  Address destination;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint8_t protocol = 0;

  /// Of IPv4 addresses in host order.
  static constexpr FlowKey of_v4(std::uint32_t source, std::uint32_t destination, std::uint16_t source_port,
                                 std::uint16_t destination_port, std::uint8_t protocol) {
    return {Address::of_v4(source), Address::of_v4(destination), source_port, destination_port, protocol};
  }
  /// The key of the other direction.
  constexpr FlowKey reversed() const { return {destination, source, destination_port, source_port, protocol}; }

  constexpr auto operator<=>(FlowKey const&) const = default;
};

/// "192.0.2.1:80", "[2001:db8::1]:80".
std::string to_string(Address const& address, std::uint16_t port);
/// "192.0.2.1:40000 > 198.51.100.2:443 protocol 6".
std::string to_string(FlowKey const& key);

/// A number common to both directions of a flow. `secret` changes all numbers: senders choose addresses and ports, but
/// cannot choose the number without it. The same in every process.
std::uint64_t hash_both_ways(FlowKey const& key, std::uint64_t secret);

/// Addresses and protocol of an IPv4 header; the ports are 0.
inline FlowKey flow_without_ports(const std::uint8_t* ip) {
  return FlowKey::of_v4(load_be32(ip + 12), load_be32(ip + 16), 0, 0, ip[9]);
}

/// The flow shown by the headers of one packet.
struct PacketFlow {
  FlowKey key;
  bool has_ports = false;  ///< has_whole_ports(); else the ports of `key` are 0

  bool operator==(PacketFlow const&) const = default;
};
/// Precondition: `layers` are the frame's own and have kIpv4.
inline PacketFlow flow_of(const std::uint8_t* frame, Layers const& layers) {
  PacketFlow flow{flow_without_ports(frame + layers.l3), has_whole_ports(layers.flags)};
  if (flow.has_ports) {
    const Ports ports = load_ports(frame + layers.l4);
    flow.key.source_port = ports.source;
    flow.key.destination_port = ports.destination;
  }
  return flow;
}

/// The compressed form of a FlowKey of IPv4 addresses: two words, for tables whose speed depends on short keys.
struct Ipv4FlowKey {
  std::uint64_t addresses = 0;  ///< source, destination
  std::uint64_t transport = 0;  ///< source port, destination port, 24 bits 0, protocol

  /// Precondition: both addresses are IPv4.
  static constexpr Ipv4FlowKey of(FlowKey const& key) {
    return {std::uint64_t{key.source.v4()} << 32 | key.destination.v4(),
            std::uint64_t{key.source_port} << 48 | std::uint64_t{key.destination_port} << 32 | key.protocol};
  }
  constexpr FlowKey whole() const {
    return FlowKey::of_v4(static_cast<std::uint32_t>(addresses >> 32), static_cast<std::uint32_t>(addresses),
                          static_cast<std::uint16_t>(transport >> 48), static_cast<std::uint16_t>(transport >> 32),
                          static_cast<std::uint8_t>(transport));
  }
  constexpr bool operator==(Ipv4FlowKey const&) const = default;
};

}  // namespace catena::packet
