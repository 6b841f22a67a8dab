// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/headers.hpp>

namespace catena::packet {
namespace {

constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeVlan = 0x8100;
constexpr std::uint16_t kEtherTypeQinQ = 0x88A8;
constexpr std::uint32_t kMaxVlanTags = 2;

/// Fills in the transport header at `l4` of a datagram that ends at `end` (both from the start of the frame).
void parse_transport(const std::uint8_t* frame, std::uint32_t l4, std::uint32_t end, std::uint8_t protocol,
                     bool fragmented, Layers& layers) {
  const std::uint32_t room = end - l4;
  const std::uint8_t* header = frame + l4;
  switch (protocol) {
    case kProtocolTcp: {
      if (room < kTcpMinBytes) {
        return;
      }
      const std::uint32_t bytes = (header[12] >> 4) * 4U;
      if (bytes < kTcpMinBytes || bytes > room) {
        return;
      }
      layers.flags = static_cast<std::uint8_t>(layers.flags | kTcp | kPorts);
      layers.payload = static_cast<std::uint8_t>(l4 + bytes);
      layers.payload_length = static_cast<std::uint16_t>(room - bytes);
      return;
    }
    case kProtocolUdp: {
      if (room < kUdpBytes) {
        return;
      }
      std::uint32_t bytes = load_be16(header + 4);
      if (fragmented && bytes > room) {
        bytes = room;  // the length speaks of the whole datagram, of which this is the first part
      }
      if (bytes < kUdpBytes || bytes > room) {
        return;
      }
      layers.flags = static_cast<std::uint8_t>(layers.flags | kUdp | kPorts);
      layers.payload = static_cast<std::uint8_t>(l4 + kUdpBytes);
      layers.payload_length = static_cast<std::uint16_t>(bytes - kUdpBytes);
      return;
    }
    case kProtocolIcmp:
      if (room >= kIcmpBytes) {
        layers.flags = static_cast<std::uint8_t>(layers.flags | kIcmp);
        layers.payload = static_cast<std::uint8_t>(l4 + kIcmpBytes);
        layers.payload_length = static_cast<std::uint16_t>(room - kIcmpBytes);
      }
      return;
    case kProtocolEsp:
      if (room >= 8 && !fragmented) {
        layers.flags = static_cast<std::uint8_t>(layers.flags | kEsp);
      }
      return;
    default:
      return;
  }
}

/// The same of an IPv4 header, if one stands at `l3`, and of what it carries. `layers` knows of the tags before it.
void parse_ipv4_at(const std::uint8_t* frame, std::uint32_t length, std::uint32_t l3, Layers& layers) {
  if (length < l3 + kIpv4MinBytes) {
    return;
  }
  const std::uint8_t* ip = frame + l3;
  const std::uint32_t header_bytes = (ip[0] & 0x0FU) * 4U;
  const std::uint32_t total = load_be16(ip + 2);
  if ((ip[0] >> 4) != 4 || header_bytes < kIpv4MinBytes || total < header_bytes || total > length - l3) {
    return;
  }
  const std::uint32_t l4 = l3 + header_bytes;
  const std::uint16_t fragment = load_be16(ip + 6);
  const bool later_part = (fragment & 0x1FFFU) != 0;
  const bool fragmented = later_part || (fragment & 0x2000U) != 0;
  layers.flags = static_cast<std::uint8_t>(layers.flags | kIpv4 | (fragmented ? kFragment : 0));
  layers.l3 = static_cast<std::uint8_t>(l3);
  layers.l4 = static_cast<std::uint8_t>(l4);
  layers.payload = layers.l4;
  layers.l3_length = static_cast<std::uint16_t>(total);
  layers.payload_length = static_cast<std::uint16_t>(total - header_bytes);
  if (!later_part) {
    parse_transport(frame, l4, l3 + total, ip[9], fragmented, layers);
  }
}

}  // namespace

Layers parse(const std::uint8_t* frame, std::uint32_t length) {
  Layers layers{};
  if (length < kEthernetBytes) {
    return layers;
  }
  std::uint32_t l3 = kEthernetBytes;
  std::uint16_t type = load_be16(frame + 12);
  for (std::uint32_t tag = 0; tag < kMaxVlanTags && (type == kEtherTypeVlan || type == kEtherTypeQinQ); ++tag) {
    if (length < l3 + 4) {
      return layers;
    }
    type = load_be16(frame + l3 + 2);
    l3 += 4;
    layers.flags = kVlan;
  }
  if (type == kEtherTypeIpv4) {
    parse_ipv4_at(frame, length, l3, layers);
  }
  return layers;
}

Layers parse_ipv4(const std::uint8_t* datagram, std::uint32_t length) {
  Layers layers{};
  parse_ipv4_at(datagram, length, 0, layers);
  return layers;
}

std::uint64_t checksum_add(const std::uint8_t* bytes, std::size_t length, std::uint64_t start) {
  std::uint64_t sum = start;
  std::size_t i = 0;
  for (; i + 4 <= length; i += 4) {
    const std::uint32_t word = load_be32(bytes + i);
    sum += (word >> 16) + (word & 0xFFFFU);
  }
  if (i + 2 <= length) {
    sum += load_be16(bytes + i);
    i += 2;
  }
  if (i < length) {
    sum += static_cast<std::uint64_t>(bytes[i]) << 8;
  }
  return sum;
}

std::uint16_t checksum_finish(std::uint64_t sum) {
  while ((sum >> 16) != 0) {
    sum = (sum & 0xFFFFU) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(~sum);
}

}  // namespace catena::packet
