// SPDX-License-Identifier: Apache-2.0
#include "flow.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <random>

namespace catena::monitor {
namespace {

// RFC 9565: the data offset's bits in tcpControlBits are zero.
constexpr std::uint16_t kTcpFlagBits = 0x0FFF;

FlowKey read_key(packet::Packet const& packet) {
  const std::uint8_t* ip = packet.l3();
  const std::uint8_t* l4 = packet.l4();
  std::uint16_t sport = 0;
  std::uint16_t dport = 0;
  if (packet.is(packet::kPorts)) {
    const packet::Ports ports = packet::load_ports(l4);
    sport = ports.source;
    dport = ports.destination;
  } else if (packet.is(packet::kIcmp)) {
    dport = packet::load_be16(l4);
  }
  return FlowKey::of(packet::load_be32(ip + 12), packet::load_be32(ip + 16), sport, dport, ip[9]);
}

}  // namespace

FlowHash::FlowHash() {
  std::random_device random;
  for (std::uint64_t& seed : seeds_) {
    seed = std::uint64_t{random()} << 32 | random() | 1;
  }
}

std::string dotted(std::uint32_t address) {
  return concat(address >> 24, ".", address >> 16 & 0xFF, ".", address >> 8 & 0xFF, ".", address & 0xFF);
}

FlowKey key_of(packet::Packet const& packet) { return read_key(packet); }

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
