// SPDX-License-Identifier: Apache-2.0
#include "arrival.hpp"

#include "icmp_error.hpp"
#include "rewrite.hpp"

namespace catena::nat {
namespace {

constexpr std::uint8_t kEchoReplyType = 0;
constexpr std::uint8_t kEchoRequestType = 8;
constexpr std::uint32_t kTcpFlagsAt = 13;
constexpr std::uint16_t kFragmentOffsetMask = 0x1FFF;

Kind read_ports(packet::Packet const& packet, Arrival& arrival) {
  if (!packet.is(packet::kPorts)) {
    return Kind::kMalformed;
  }
  const bool is_tcp = packet.is(packet::kTcp);
  const std::uint8_t* header = packet.l4();
  arrival.source.port = packet::load_be16(header);
  arrival.destination.port = packet::load_be16(header + 2);
  arrival.source.protocol = arrival.destination.protocol = is_tcp ? Protocol::kTcp : Protocol::kUdp;
  arrival.tcp_flags = is_tcp ? header[kTcpFlagsAt] : std::uint8_t{0};
  return Kind::kTcpOrUdp;
}

Kind read_icmp(packet::Packet const& packet, Arrival& arrival) {
  if (!packet.is(packet::kIcmp)) {
    return Kind::kMalformed;
  }
  const std::uint8_t* header = packet.l4();
  if (is_icmp_error(header[0])) {
    return Kind::kIcmpError;
  }
  if (header[0] != kEchoRequestType && header[0] != kEchoReplyType) {
    return Kind::kUnsupported;
  }
  arrival.source.port = arrival.destination.port = packet::load_be16(header + kIcmpIdentifierAt);
  arrival.source.protocol = arrival.destination.protocol = Protocol::kIcmp;
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

}  // namespace

Arrival classify(packet::Packet const& packet, Realms const& realms) {
  const std::uint8_t* ip = packet.l3();
  Arrival arrival;
  arrival.source.address = packet::load_be32(ip + kIpSourceAt);
  arrival.destination.address = packet::load_be32(ip + kIpDestinationAt);
  arrival.is_inbound = realms.is_external(arrival.destination.address);
  arrival.is_outbound = realms.is_inside(arrival.source.address) &&
                        (arrival.is_inbound || !realms.is_inside(arrival.destination.address));
  if (arrival.is_inbound || arrival.is_outbound) {
    arrival.kind = read_transport(packet, arrival);
  }
  return arrival;
}

}  // namespace catena::nat
