// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>
#include <catena/packet/icmp_error.hpp>

#include <cstdint>

#include "fragment_table.hpp"
#include "nat_config.hpp"

namespace catena::nat {

/// Class of a packet, determined before any state is read.
enum class Kind : std::uint8_t {
  kUntouched,  ///< from inside to inside or multicast, or from outside to an address neither external nor inside
  kToInside,   ///< from outside to an inside address, which no outside host can know
  kSpoofed,    ///< an inside source, but it arrived on a port that is not inside
  kTcpOrUdp,
  kEchoRequest,
  kEchoReply,
  kIcmpError,
  kLaterFragment,  ///< without ports
  kMalformed,      ///< its TCP, UDP or ICMP header is incomplete
  kUnsupported,    ///< another protocol, or an ICMP message that is neither query nor error
};

/// A classified arriving packet.
struct Arrival {
  Kind kind = Kind::kUntouched;
  bool is_outbound = false;   ///< from inside
  bool is_inbound = false;    ///< to an external address; with is_outbound: hairpinned (RFC 4787 REQ-9)
  Protocol protocol{};        ///< if `kind` has ports or identifiers
  packet::FlowKey flow = {};  ///< with ports if `kind` has any; kEcho*: both have the identifier

  Endpoint source() const { return {flow.source.v4(), flow.source_port, protocol}; }
  Endpoint destination() const { return {flow.destination.v4(), flow.destination_port, protocol}; }
};

/// A pure function of the packet's bytes and the two realms. Precondition: packet.is(kIpv4).
Arrival classify(packet::Packet const& packet, Realms const& realms);
/// Reads a TCP header. Pure. Precondition: the packet has ports of kTcp.
Segment read_segment(packet::Packet const& packet);
/// The key common to the fragments of the packet's datagram. Pure; precondition as for classify().
DatagramKey datagram_key(packet::Packet const& packet);
/// The ends of a quoted datagram.
Endpoint sender_of(packet::Quote const& quote);
Endpoint receiver_of(packet::Quote const& quote);

}  // namespace catena::nat
