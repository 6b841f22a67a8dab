// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/tcp_state.hpp>
#include <catena/packet/batch.hpp>
#include <catena/packet/icmp_error.hpp>

#include <cstdint>
#include <optional>
#include <span>

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
  Kind kind;
  bool is_outbound;      ///< from inside
  bool is_inbound;       ///< to an external address; with is_outbound: hairpinned (RFC 4787 REQ-9)
  Endpoint source;       ///< port and protocol only if `kind` has ports or identifiers, else 0
  Endpoint destination;  ///< likewise; kEcho*: the ports of both are the identifier
  std::uint64_t hash;  ///< of the endpoint inside, or else of the destination, by the table of the NAT; of classify() 0
};

/// A pure function of the packet's bytes and the two realms. Precondition: packet.is(kIpv4).
Arrival classify(packet::Packet const& packet, Realms const& realms);

/// The shift count of the window scale option (RFC 7323 section 2.2) among the options of a TCP header.
std::optional<std::uint8_t> window_scale(std::span<const std::uint8_t> options);

/// Reads a TCP header. Pure. Precondition: the packet has ports of kTcp.
inline Segment read_segment(packet::Packet const& packet) {
  constexpr std::uint32_t kSequenceAt = 4;
  constexpr std::uint32_t kAcknowledgedAt = 8;
  constexpr std::uint32_t kFlagsAt = 13;
  constexpr std::uint32_t kWindowAt = 14;
  const std::uint8_t* header = packet.l4();
  packet::Layers const& layers = packet.layers();
  const std::uint8_t flags = header[kFlagsAt];
  const std::uint32_t sequence = packet::load_be32(header + kSequenceAt);
  Segment segment{.sequence = sequence,
                  .end = sequence + layers.payload_length,
                  .acknowledged = packet::load_be32(header + kAcknowledgedAt),
                  .window = packet::load_be16(header + kWindowAt),
                  .flags = flags};
  if ((flags & (nf::kTcpSyn | nf::kTcpFin)) != 0) [[unlikely]] {
    const bool is_syn = (flags & nf::kTcpSyn) != 0;
    segment.end += (is_syn ? 1U : 0U) + ((flags & nf::kTcpFin) != 0 ? 1U : 0U);
    if (is_syn) {
      segment.scale = window_scale(std::span(header, layers.payload - layers.l4).subspan(packet::kTcpMinBytes));
    }
  }
  return segment;
}

/// The key common to the fragments of the packet's datagram. Pure; precondition as for classify().
DatagramKey datagram_key(packet::Packet const& packet);
/// The ends of a quoted datagram.
Endpoint sender_of(packet::Quote const& quote);
Endpoint receiver_of(packet::Quote const& quote);

}  // namespace catena::nat
