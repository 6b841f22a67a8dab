// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/config.hpp>
#include <catena/packet/batch.hpp>

#include <cstdint>

/// Traffic selectors (RFC 4301 section 4.4.1.1): they select the inner packets of an association.
namespace catena::ipsec {

/// Datagram fields inspected by selectors. Addresses and ports in host order.
struct FlowKey {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint8_t protocol = 0;
  bool has_ports = false;  ///< packet::has_whole_ports()
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;

  /// True if the datagram has ports, but this part of it does not show them.
  bool hides_ports() const {
    return !has_ports && (protocol == packet::kProtocolTcp || protocol == packet::kProtocolUdp);
  }
};

/// Precondition: `layers` are the frame's own and have packet::kIpv4.
inline FlowKey flow_key(const std::uint8_t* frame, packet::Layers const& layers) {
  const std::uint8_t* ip = frame + layers.l3;
  FlowKey flow;
  flow.source = packet::load_be32(ip + 12);
  flow.destination = packet::load_be32(ip + 16);
  flow.protocol = ip[9];
  flow.has_ports = packet::has_whole_ports(layers.flags);
  if (flow.has_ports) {
    const packet::Ports ports = packet::load_ports(frame + layers.l4);
    flow.source_port = ports.source;
    flow.destination_port = ports.destination;
  }
  return flow;
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
  bool matches(FlowKey const& flow) const {
    return source.contains(flow.source) && destination.contains(flow.destination) &&
           (protocol < 0 || protocol == flow.protocol) && (!opaque_ports || !flow.has_ports) &&
           (!needs_ports || (flow.has_ports && source_port.contains(flow.source_port) &&
                             destination_port.contains(flow.destination_port)));
  }
  /// True if the datagram may be part of one that matches(): hidden ports may have any value.
  bool may_match(FlowKey const& flow) const {
    if (!flow.hides_ports() || !needs_ports) {
      return matches(flow);
    }
    return source.contains(flow.source) && destination.contains(flow.destination) &&
           (protocol < 0 || protocol == flow.protocol);
  }
  /// True if it matches all packets with hidden ports of those datagrams of protocol `of` that `other` may match.
  bool matches_rest_of(Selector const& other, std::uint8_t of) const {
    return source.contains(other.source) && destination.contains(other.destination) &&
           (protocol < 0 || protocol == of) && !needs_ports;
  }
};

/// Reads the mapping `{source, destination, protocol, source_port, destination_port}`, every key optional.
/// InvalidArgument with position: not a prefix, host bits set, unknown protocol, not a port range, opaque beside a
/// range, ports for a protocol without ports, unknown key.
Result<Selector> read_selector(nf::Config& config);

}  // namespace catena::ipsec
