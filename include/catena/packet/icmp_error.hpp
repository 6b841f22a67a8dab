// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>
#include <catena/packet/flow_key.hpp>

#include <cstdint>
#include <variant>

/// ICMP errors and their quoted datagrams (RFC 5508, sections 4 and 5). Thread rule: pure functions of the packet's
/// bytes.
namespace catena::packet {

/// Destination unreachable, source quench, time exceeded, parameter problem.
bool is_icmp_error(std::uint8_t type);

/// The datagram quoted by an ICMP error.
struct Quote {
  std::uint8_t* ip;        ///< its IPv4 header, within the frame
  std::uint8_t* l4;        ///< the bytes after that header
  std::uint32_t l4_bytes;  ///< number of quoted bytes of it, at least 8
  bool is_echo_request;    ///< of kProtocolIcmp; else it is an echo reply
  FlowKey flow;  ///< of kProtocolTcp, kProtocolUdp or kProtocolIcmp; ICMP: both ports are the echo's identifier
};

/// The new ends of a quoted datagram and of its error. All addresses are IPv4.
struct QuoteEnds {
  FlowKey flow;  ///< with the protocol of the quote
  Address outer_source;
  Address outer_destination;
};

/// Why a packet cannot be parsed as an error about TCP, UDP or an echo.
enum class QuoteProblem : std::uint8_t {
  kMalformed,  ///< cut short, no IPv4 header, or a wrong ICMP or quoted header checksum (RFC 5508 REQ-3)
  kFragment,   ///< the error is fragmented, or quotes a later fragment, which has no ports
  kOther,      ///< quotes another protocol, or another ICMP message than an echo
};

/// Reads the quote of an ICMP error. Precondition: packet.is(kIcmp).
std::variant<Quote, QuoteProblem> read_quote(Packet const& packet);

/// Writes `ends` and updates the checksums: of both IPv4 headers by RFC 1624, likewise of the quoted transport header
/// if it is quoted; the checksum of the error, verified by read_quote(), is computed again. Both ends of a quoted echo
/// share one identifier, so the changed end supplies the new one.
void rewrite_error(Packet const& packet, Quote const& quote, QuoteEnds const& ends);

}  // namespace catena::packet
