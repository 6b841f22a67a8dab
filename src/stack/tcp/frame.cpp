// SPDX-License-Identifier: Apache-2.0
#include "stack/tcp/frame.hpp"

#include <cstring>

namespace catena::stack {
namespace {

constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kIpv6Bytes = 40;

unsigned octet(std::byte value) { return std::to_integer<unsigned>(value); }

/// The first header that is no extension header, from the next-header field of the IPv6 header on.
std::optional<Transport> walk_extensions(std::span<const std::byte> frame) {
  constexpr unsigned kHopByHop = 0;
  constexpr unsigned kRouting = 43;
  constexpr unsigned kFragment = 44;
  constexpr unsigned kDestination = 60;
  unsigned next = octet(frame[kEthernetBytes + 6]);
  std::size_t at = kEthernetBytes + kIpv6Bytes;
  while (next == kHopByHop || next == kRouting || next == kFragment || next == kDestination) {
    if (frame.size() < at + 8) {
      return std::nullopt;
    }
    if (next == kFragment && (load_be16(&frame[at + 2]) & 0xFFF9U) != 0) {  // offset, or more fragments
      return std::nullopt;
    }
    const std::size_t length = next == kFragment ? 8 : 8 * (1 + std::size_t{octet(frame[at + 1])});
    next = octet(frame[at]);
    at += length;
  }
  return Transport{static_cast<std::uint8_t>(next), false, at};
}

}  // namespace

std::optional<Transport> find_transport(std::span<const std::byte> frame) {
  if (frame.size() < kEthernetBytes + kIpv4Bytes) {
    return std::nullopt;
  }
  const std::uint16_t type = load_be16(&frame[12]);
  const std::byte* const ip = &frame[kEthernetBytes];
  if (type == kTypeIpv4) {
    constexpr unsigned kOffsetOrMore = 0x3FFF;
    const std::size_t header = std::size_t{4} * (octet(ip[0]) & 0xFU);
    if (header < kIpv4Bytes || (load_be16(ip + 6) & kOffsetOrMore) != 0) {
      return std::nullopt;
    }
    return Transport{static_cast<std::uint8_t>(octet(ip[9])), true, kEthernetBytes + header};
  }
  if (type == kTypeIpv6 && frame.size() >= kEthernetBytes + kIpv6Bytes) {
    return walk_extensions(frame);
  }
  return std::nullopt;
}

std::optional<Segment> find_segment(std::span<const std::byte> frame, bool is_incoming) {
  const std::optional<Transport> transport = find_transport(frame);
  if (!transport || transport->protocol != kTcpProtocol || frame.size() < transport->offset + kTcpHeaderBytes) {
    return std::nullopt;
  }
  Segment segment{.tcp = transport->offset, .is_v4 = transport->is_v4};
  const std::byte* const ip = &frame[kEthernetBytes];
  if (segment.is_v4) {
    std::memcpy(segment.remote.data(), ip + (is_incoming ? 12 : 16), 4);
  } else {
    std::memcpy(segment.remote.data(), ip + (is_incoming ? 8 : 24), 16);
  }
  const std::uint16_t source = load_be16(&frame[segment.tcp]);
  const std::uint16_t destination = load_be16(&frame[segment.tcp + 2]);
  segment.remote_port = is_incoming ? source : destination;
  segment.local_port = is_incoming ? destination : source;
  return segment;
}

std::uint64_t pseudo_header_sum(std::span<const std::byte> frame, bool is_v4, std::size_t length) {
  const std::byte* const addresses = &frame[kEthernetBytes + (is_v4 ? 12 : 8)];
  return packet::checksum_add(octets(addresses), is_v4 ? 8 : 32, kTcpProtocol + length);
}

bool has_right_checksum(std::span<const std::byte> frame) {
  const std::optional<Transport> transport = find_transport(frame);
  if (!transport || transport->protocol != kTcpProtocol) {
    return true;
  }
  const std::byte* const ip = &frame[kEthernetBytes];
  const std::size_t end = kEthernetBytes + (transport->is_v4 ? std::size_t{load_be16(ip + 2)}
                                                             : kIpv6Bytes + std::size_t{load_be16(ip + 4)});
  if (end < transport->offset || end > frame.size()) {
    return false;
  }
  const std::size_t length = end - transport->offset;
  const std::uint64_t sum = pseudo_header_sum(frame, transport->is_v4, length);
  return packet::checksum_finish(packet::checksum_add(octets(frame.data()) + transport->offset, length, sum)) == 0;
}

}  // namespace catena::stack
