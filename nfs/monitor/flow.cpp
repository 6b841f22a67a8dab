// SPDX-License-Identifier: Apache-2.0
#include "flow.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

namespace catena::monitor {
namespace {

// RFC 9565: the data offset's bits in tcpControlBits are zero.
constexpr std::uint16_t kTcpControlBits = 0x0FFF;

}  // namespace

std::string dotted(std::uint32_t address) {
  return concat(address >> 24, ".", address >> 16 & 0xFF, ".", address >> 8 & 0xFF, ".", address & 0xFF);
}

Observation observe(packet::Packet const& packet) {
  const std::uint8_t* ip = packet.l3();
  const std::uint8_t* l4 = packet.l4();
  std::uint16_t sport = 0;
  std::uint16_t dport = 0;
  if (packet.is(packet::kPorts)) {
    sport = packet::load_be16(l4);
    dport = packet::load_be16(l4 + 2);
  } else if (packet.is(packet::kIcmp)) {
    dport = packet::load_be16(l4);
  }
  const bool is_tcp = packet.is(packet::kTcp);
  return {
      .key = FlowKey::of(packet::load_be32(ip + 12), packet::load_be32(ip + 16), sport, dport, ip[9]),
      .arrival_ns = packet.arrival_ns(),
      .length = packet::load_be16(ip + 2),
      .tcp_flags = is_tcp ? static_cast<std::uint16_t>(packet::load_be16(l4 + 12) & kTcpControlBits) : std::uint16_t{0},
      .tos = ip[1]};
}

}  // namespace catena::monitor
