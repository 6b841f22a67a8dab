// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow_hash.hpp"

#include <catena/packet/icmp_error.hpp>

#include <variant>

namespace catena::runtime {
namespace {

constexpr std::uint8_t kEchoReply = 0;
constexpr std::uint8_t kEchoRequest = 8;

/// Two addresses alone.
packet::FlowKey addresses_of(packet::Packet const& packet) {
  packet::FlowKey key = packet::flow_without_ports(packet.l3());
  key.protocol = 0;
  return key;
}

packet::FlowKey key_of(packet::Packet const& packet) {
  packet::FlowKey key = addresses_of(packet);
  if (packet.is(packet::kFragment)) {
    return key;
  }
  const std::uint8_t* l4 = packet.l4();
  if (packet.is(packet::kPorts)) {
    const packet::Ports ports = packet::load_ports(l4);
    key.source_port = ports.source;
    key.destination_port = ports.destination;
    key.protocol = packet.l3()[9];
  } else if (packet.is(packet::kIcmp)) {
    if (packet::is_icmp_error(l4[0])) {
      const auto read = packet::read_quote(packet);
      if (auto const* quote = std::get_if<packet::Quote>(&read)) {
        return quote->flow;
      }
    } else if (l4[0] == kEchoReply || l4[0] == kEchoRequest) {
      key.source_port = key.destination_port = packet::load_be16(l4 + 4);
      key.protocol = packet::kProtocolIcmp;
    }
  }
  return key;
}

}  // namespace

std::uint32_t flow_hash(packet::Packet const& packet, std::uint64_t key) {
  return packet.is(packet::kIpv4) ? flow_hash(key_of(packet), key) : 0;
}

std::uint32_t flow_hash(packet::FlowKey const& flow, std::uint64_t key) {
  return static_cast<std::uint32_t>(packet::hash_both_ways(flow, key) >> 32U);
}

}  // namespace catena::runtime
