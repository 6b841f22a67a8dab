// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/config.hpp>
#include <catena/packet/flow_key.hpp>

#include <cstdint>

/// Traffic selectors (RFC 4301 section 4.4.1.1): they select the inner packets of an association.
namespace catena::ipsec {

/// True if the datagram has ports, but this part of it does not show them.
inline bool hides_ports(packet::PacketFlow const& flow) {
  return !flow.has_ports && (flow.key.protocol == packet::kProtocolTcp || flow.key.protocol == packet::kProtocolUdp);
}

struct Prefix {
  std::uint32_t address = 0;
  std::uint32_t mask = 0;
  bool contains(std::uint32_t other) const { return ((address ^ other) & mask) == 0; }
  bool contains(Prefix const& other) const { return (mask & ~other.mask) == 0 && contains(other.address); }
};

struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 65535;
  bool contains(std::uint16_t port) const { return port >= first && port <= last; }
};

/// The default matches every datagram. A selector with a port range matches only packets with readable ports. One with
/// opaque ports matches only packets without readable ports (RFC 4301 section 4.4.1.1): later fragments, and protocols
/// without ports.
struct Selector {
  Prefix source;
  Prefix destination;
  std::int32_t protocol = -1;  ///< -1: any
  bool needs_ports = false;
  bool opaque_ports = false;  ///< not with needs_ports
  PortRange source_port;
  PortRange destination_port;

  /// True if it matches every flow, so that the flow need not be read.
  bool matches_all() const {
    return source.mask == 0 && destination.mask == 0 && protocol < 0 && !needs_ports && !opaque_ports;
  }
  bool matches(packet::PacketFlow const& flow) const {
    return matches_without_ports(flow.key) && (!opaque_ports || !flow.has_ports) &&
           (!needs_ports || (flow.has_ports && source_port.contains(flow.key.source_port) &&
                             destination_port.contains(flow.key.destination_port)));
  }
  /// True if the datagram may be part of one that matches(): hidden ports may have any value.
  bool may_match(packet::PacketFlow const& flow) const {
    return hides_ports(flow) && needs_ports ? matches_without_ports(flow.key) : matches(flow);
  }
  /// True if it matches all packets with hidden ports of those datagrams of protocol `of` that `other` may match.
  bool matches_rest_of(Selector const& other, std::uint8_t of) const {
    return source.contains(other.source) && destination.contains(other.destination) &&
           (protocol < 0 || protocol == of) && !needs_ports;
  }

 private:
  bool matches_without_ports(packet::FlowKey const& key) const {
    return source.contains(key.source.v4()) && destination.contains(key.destination.v4()) &&
           (protocol < 0 || protocol == key.protocol);
  }
};

/// Reads the mapping `{source, destination, protocol, source_port, destination_port}`, every key optional.
/// InvalidArgument with position: not a prefix, host bits set, unknown protocol, not a port range, opaque beside a
/// range, ports for a protocol without ports, unknown key.
Result<Selector> read_selector(nf::Config& config);

}  // namespace catena::ipsec
