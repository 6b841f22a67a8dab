// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>
#include <catena/packet/icmp_error.hpp>

#include <cstdint>

#include "fragment_table.hpp"
#include "nat_config.hpp"

namespace catena::nat {

/// What a packet is to the NAT, before anybody inspects its state.
enum class Kind : std::uint8_t {
  kUntouched,  ///< from inside to inside or to many, or from outside to an address that is neither ours nor inside
  kToInside,   ///< from outside to an inside address: nobody there can know it
  kSpoofed,    ///< an inside source, but it came in on a port that is not inside
  kTcpOrUdp,
  kEchoRequest,
  kEchoReply,
  kIcmpError,
  kLaterFragment,  ///< has no ports
  kMalformed,      ///< its TCP, UDP or ICMP header is not all there
  kUnsupported,    ///< another protocol, or an ICMP message that is neither query nor error
};

/// A packet as the NAT sees it arrive.
struct Arrival {
  Kind kind = Kind::kUntouched;
  bool is_outbound = false;    ///< comes from inside
  bool is_inbound = false;     ///< goes to an external address; with is_outbound: hairpinned (RFC 4787 REQ-9)
  std::uint8_t tcp_flags = 0;  ///< kTcpOrUdp; 0 for UDP
  bool has_data = false;       ///< the same: a payload
  Endpoint source{};           ///< ports where `kind` has any; kEcho*: both have the identifier
  Endpoint destination{};
};

/// Pure function of the packet's bytes and the two sides. Precondition: packet.is(kIpv4).
Arrival classify(packet::Packet const& packet, Realms const& realms);
/// What the fragments of the packet's datagram have in common. The same.
DatagramKey datagram_key(packet::Packet const& packet);
/// One end of a quoted datagram.
Endpoint endpoint_of(packet::QuotedEnd const& end, packet::Quote const& quote);

}  // namespace catena::nat
