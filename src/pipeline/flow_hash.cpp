// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow_hash.hpp"

#include <catena/packet/headers.hpp>
#include <catena/packet/icmp_error.hpp>

#include <variant>

namespace catena::runtime {
namespace {

constexpr std::uint8_t kEchoReply = 0;
constexpr std::uint8_t kEchoRequest = 8;

/// What is hashed: each end's address and port, in either order.
struct Endpoints {
  std::uint64_t a;
  std::uint64_t b;
  std::uint8_t protocol;
};

std::uint64_t end_of(std::uint32_t address, std::uint16_t port) { return std::uint64_t{address} << 16U | port; }

/// The finalizer of SplitMix64 (G. L. Steele et al., "Fast Splittable Pseudorandom Number Generators", 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

Endpoints addresses_of(packet::Packet const& packet) {
  const std::uint8_t* ip = packet.l3();
  return {end_of(packet::load_be32(ip + 12), 0), end_of(packet::load_be32(ip + 16), 0), 0};
}

Endpoints endpoints_of(packet::Packet const& packet) {
  Endpoints endpoints = addresses_of(packet);
  if (packet.is(packet::kFragment)) {
    return endpoints;
  }
  const std::uint8_t* l4 = packet.l4();
  if (packet.is(packet::kPorts)) {
    const packet::Ports ports = packet::load_ports(l4);
    endpoints.a |= ports.source;
    endpoints.b |= ports.destination;
    endpoints.protocol = packet.l3()[9];
  } else if (packet.is(packet::kIcmp)) {
    if (packet::is_icmp_error(l4[0])) {
      const auto read = packet::read_quote(packet);
      if (auto const* quote = std::get_if<packet::Quote>(&read)) {
        return {end_of(quote->source.address, quote->source.port),
                end_of(quote->destination.address, quote->destination.port), quote->protocol};
      }
    } else if (l4[0] == kEchoReply || l4[0] == kEchoRequest) {
      const std::uint16_t identifier = packet::load_be16(l4 + 4);
      endpoints.a |= identifier;
      endpoints.b |= identifier;
      endpoints.protocol = packet::kProtocolIcmp;
    }
  }
  return endpoints;
}

}  // namespace

std::uint32_t flow_hash(packet::Packet const& packet, std::uint64_t key) {
  if (!packet.is(packet::kIpv4)) {
    return 0;
  }
  const Endpoints endpoints = endpoints_of(packet);
  // a sum: the same for both directions
  return static_cast<std::uint32_t>(mix(mix(endpoints.a ^ key) + mix(endpoints.b ^ key) + endpoints.protocol) >> 32U);
}

}  // namespace catena::runtime
