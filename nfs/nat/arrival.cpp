// SPDX-License-Identifier: Apache-2.0
#include "arrival.hpp"

#include <catena/packet/rewrite.hpp>

namespace catena::nat {
namespace {

constexpr std::uint8_t kEchoReplyType = 0;
constexpr std::uint8_t kEchoRequestType = 8;
constexpr std::uint16_t kFragmentOffsetMask = 0x1FFF;

/// Multicast (RFC 5771) or limited broadcast (RFC 919): addresses that nobody has, so there is nobody to answer.
bool is_to_many(std::uint32_t address) { return address >> 28 == 0xE || address == 0xFFFFFFFF; }

Kind read_ports(packet::Packet const& packet, Arrival& arrival) {
  if (!packet::has_whole_ports(packet.layers().flags)) {
    return Kind::kMalformed;
  }
  const packet::Ports ports = packet::load_ports(packet.l4());
  const Protocol protocol = packet.is(packet::kTcp) ? Protocol::kTcp : Protocol::kUdp;
  arrival.source = {arrival.source.address, ports.source, protocol};
  arrival.destination = {arrival.destination.address, ports.destination, protocol};
  return Kind::kTcpOrUdp;
}

Kind read_icmp(packet::Packet const& packet, Arrival& arrival) {
  if (!packet.is(packet::kIcmp)) {
    return Kind::kMalformed;
  }
  const std::uint8_t* header = packet.l4();
  if (packet::is_icmp_error(header[0])) {
    return Kind::kIcmpError;
  }
  if (header[0] != kEchoRequestType && header[0] != kEchoReplyType) {
    return Kind::kUnsupported;
  }
  const std::uint16_t identifier = packet::load_be16(header + packet::kIcmpIdentifierAt);
  arrival.source = {arrival.source.address, identifier, Protocol::kIcmp};
  arrival.destination = {arrival.destination.address, identifier, Protocol::kIcmp};
  return header[0] == kEchoRequestType ? Kind::kEchoRequest : Kind::kEchoReply;
}

Kind read_transport(packet::Packet const& packet, Arrival& arrival) {
  const std::uint8_t* ip = packet.l3();
  if (packet.is(packet::kFragment) && (packet::load_be16(ip + 6) & kFragmentOffsetMask) != 0) {
    return Kind::kLaterFragment;
  }
  switch (ip[9]) {
    case packet::kProtocolTcp:
    case packet::kProtocolUdp:
      return read_ports(packet, arrival);
    case packet::kProtocolIcmp:
      return read_icmp(packet, arrival);
    default:
      return Kind::kUnsupported;
  }
}

Protocol protocol_of(packet::Quote const& quote) {
  return quote.flow.protocol == packet::kProtocolTcp   ? Protocol::kTcp
         : quote.flow.protocol == packet::kProtocolUdp ? Protocol::kUdp
                                                       : Protocol::kIcmp;
}

}  // namespace

std::optional<std::uint8_t> window_scale(std::span<const std::uint8_t> options) {
  constexpr std::uint8_t kEnd = 0;
  constexpr std::uint8_t kNoOperation = 1;
  constexpr std::uint8_t kWindowScale = 3;
  constexpr std::uint8_t kWindowScaleBytes = 3;
  while (options.size() >= 2 && options[0] != kEnd) {
    if (options[0] == kNoOperation) {
      options = options.subspan(1);
      continue;
    }
    const std::uint8_t bytes = options[1];
    if (bytes < 2 || bytes > options.size()) {
      break;
    }
    if (options[0] == kWindowScale && bytes == kWindowScaleBytes) {
      return options[2];
    }
    options = options.subspan(bytes);
  }
  return std::nullopt;
}

Arrival classify(packet::Packet const& packet, Realms const& realms) {
  const std::uint8_t* ip = packet.l3();
  const std::uint32_t source = packet::load_be32(ip + packet::kIpSourceAt);
  const std::uint32_t destination = packet::load_be32(ip + packet::kIpDestinationAt);
  Arrival arrival{.kind = Kind::kUntouched,
                  .is_outbound = false,
                  .is_inbound = false,
                  .source = {source, 0, Protocol{}},
                  .destination = {destination, 0, Protocol{}},
                  .hash = 0};
  if (is_to_many(destination)) {
    return arrival;
  }
  arrival.is_inbound = realms.is_external(destination);
  const bool is_to_inside = !arrival.is_inbound && realms.is_inside(destination);
  const bool is_from_inside = realms.is_inside(source);
  if (is_from_inside && !realms.is_inside_port(packet.ingress())) {
    arrival.kind = Kind::kSpoofed;
    arrival.is_inbound = false;
    return arrival;
  }
  arrival.is_outbound = is_from_inside && !is_to_inside;
  if (arrival.is_inbound || arrival.is_outbound) {
    arrival.kind = read_transport(packet, arrival);
  } else if (is_to_inside && !is_from_inside) {
    arrival.kind = Kind::kToInside;
  }
  return arrival;
}

DatagramKey datagram_key(packet::Packet const& packet) {
  const std::uint8_t* ip = packet.l3();
  return {packet::load_be32(ip + packet::kIpSourceAt), packet::load_be32(ip + packet::kIpDestinationAt),
          packet::load_be16(ip + 4), ip[9]};
}

Endpoint sender_of(packet::Quote const& quote) {
  return {quote.flow.source.v4(), quote.flow.source_port, protocol_of(quote)};
}

Endpoint receiver_of(packet::Quote const& quote) {
  return {quote.flow.destination.v4(), quote.flow.destination_port, protocol_of(quote)};
}

}  // namespace catena::nat
