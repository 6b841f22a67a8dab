// SPDX-License-Identifier: Apache-2.0
#include "flow.hpp"

#include <catena/packet/headers.hpp>

#include <random>

namespace catena::monitor {
namespace {

// RFC 9565: the data offset's bits in tcpControlBits are zero.
constexpr std::uint16_t kTcpFlagBits = 0x0FFF;

packet::Ipv4FlowKey read_key(packet::Packet const& packet) {
  packet::FlowKey key = packet::flow_without_ports(packet.l3());
  const std::uint8_t* l4 = packet.l4();
  if (packet.is(packet::kPorts)) {
    const packet::Ports ports = packet::load_ports(l4);
    key.source_port = ports.source;
    key.destination_port = ports.destination;
  } else if (packet.is(packet::kIcmp)) {
    key.destination_port = packet::load_be16(l4);
  }
  return packet::Ipv4FlowKey::of(key);
}

}  // namespace

FlowHash::FlowHash() {
  std::random_device random;
  for (std::uint64_t& seed : seeds_) {
    seed = std::uint64_t{random()} << 32 | random() | 1;
  }
}

packet::Ipv4FlowKey key_of(packet::Packet const& packet) { return read_key(packet); }

Observation observe(packet::Packet const& packet) {
  const std::uint8_t* ip = packet.l3();
  const std::uint8_t* l4 = packet.l4();
  const bool is_tcp = packet.is(packet::kTcp);
  return {
      .key = read_key(packet),
      .arrival_ns = packet.arrival_ns(),
      .length = packet::load_be16(ip + 2),
      .tcp_flags = is_tcp ? static_cast<std::uint16_t>(packet::load_be16(l4 + 12) & kTcpFlagBits) : std::uint16_t{0},
      .tos = ip[1]};
}

}  // namespace catena::monitor
