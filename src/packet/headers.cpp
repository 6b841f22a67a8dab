// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/ether_type.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <cstring>

namespace catena::packet {
namespace {

constexpr std::uint32_t kFragmentOffset = 0x1FFF;  // in units of 8 bytes; the bits above are flags

/// What an IPv4 datagram carries: where it begins in the frame, how many bytes of it the datagram says it has, and how
/// many of these the frame has.
struct Carried {
  std::uint32_t l4;
  std::uint32_t room;
  std::uint32_t there;
  std::uint8_t protocol;
  bool fragmented;
};

constexpr std::uint16_t flag_of(Tunnel tunnel) {
  return static_cast<std::uint16_t>(static_cast<std::uint16_t>(tunnel) << 9);
}

std::uint16_t tunnel_of_protocol(std::uint8_t protocol) {
  switch (protocol) {
    case 4:
      return flag_of(Tunnel::kIpip);
    case 41:
      return flag_of(Tunnel::k6in4);
    case 47:
      return flag_of(Tunnel::kGre);
    default:
      return 0;
  }
}

std::uint16_t tunnel_of_port(std::uint16_t port) {
  switch (port) {
    case 3544:
      return flag_of(Tunnel::kTeredo);
    case 4789:
      return flag_of(Tunnel::kVxlan);
    case 6081:
      return flag_of(Tunnel::kGeneve);
    default:
      return 0;
  }
}

/// Fills in the transport header.
void parse_transport(const std::uint8_t* frame, Carried const& carried, Layers& layers) {
  const auto [l4, room, there, protocol, fragmented] = carried;
  const std::uint8_t* header = frame + l4;
  switch (protocol) {
    case kProtocolTcp: {
      if (there < kTcpMinBytes) {
        return;
      }
      const std::uint32_t bytes = (header[12] >> 4) * 4U;
      if (bytes < kTcpMinBytes || bytes > room) {
        return;
      }
      const std::uint32_t header_there = std::min(bytes, there);
      layers.flags =
          static_cast<std::uint16_t>(layers.flags | kTcp | kPorts | (header_there < bytes ? kSplitHeader : 0));
      layers.payload = static_cast<std::uint8_t>(l4 + header_there);
      layers.payload_length = static_cast<std::uint16_t>(there - header_there);
      return;
    }
    case kProtocolUdp: {
      if (there < kUdpBytes) {
        return;
      }
      std::uint32_t bytes = load_be16(header + 4);
      if (fragmented && bytes > room) {
        bytes = room;  // the length speaks of the whole datagram, of which this is the first part
      }
      if (bytes < kUdpBytes || bytes > room) {
        return;
      }
      layers.flags = static_cast<std::uint16_t>(layers.flags | kUdp | kPorts | (bytes < there ? kSurplus : 0) |
                                                tunnel_of_port(load_be16(header + 2)));
      layers.payload = static_cast<std::uint8_t>(l4 + kUdpBytes);
      layers.payload_length = static_cast<std::uint16_t>(std::min(bytes, there) - kUdpBytes);
      return;
    }
    case kProtocolIcmp:
      if (there >= kIcmpBytes) {
        layers.flags = static_cast<std::uint16_t>(layers.flags | kIcmp);
        layers.payload = static_cast<std::uint8_t>(l4 + kIcmpBytes);
        layers.payload_length = static_cast<std::uint16_t>(there - kIcmpBytes);
      }
      return;
    default:
      layers.flags = static_cast<std::uint16_t>(layers.flags | tunnel_of_protocol(protocol));
      return;
  }
}

/// Whether a fragment hides a transport header, or may overwrite one when the datagram is put together (kSplitHeader).
/// `offset`: in units of 8 bytes, as in the header.
bool splits_header(std::uint32_t offset, std::uint8_t protocol, Layers const& layers) {
  if (offset != 0) {
    return offset == 1 && protocol == kProtocolTcp;
  }
  const bool has_header = protocol == kProtocolTcp || protocol == kProtocolUdp || protocol == kProtocolIcmp;
  return has_header && (layers.flags & (kTcp | kUdp | kIcmp)) == 0;
}

/// The same of an IPv4 header, if one is at `l3`, and of what it carries.
void parse_ipv4_at(const std::uint8_t* frame, std::uint32_t length, std::uint32_t l3, Layers& layers) {
  if (length < l3 + kIpv4MinBytes) {
    return;
  }
  const std::uint8_t* ip = frame + l3;
  const std::uint32_t header_bytes = (ip[0] & 0x0FU) * 4U;
  const std::uint32_t total = load_be16(ip + 2);
  if ((ip[0] >> 4) != 4 || header_bytes < kIpv4MinBytes || total < header_bytes || header_bytes > length - l3) {
    return;
  }
  const std::uint32_t there = std::min(total, length - l3);
  const std::uint32_t l4 = l3 + header_bytes;
  const std::uint16_t fragment = load_be16(ip + 6);
  const std::uint32_t offset = fragment & kFragmentOffset;
  const bool fragmented = offset != 0 || (fragment & 0x2000U) != 0;
  layers.flags = static_cast<std::uint16_t>(kIpv4 | (fragmented ? kFragment : 0) | (there < total ? kTruncated : 0));
  layers.l3 = static_cast<std::uint8_t>(l3);
  layers.l4 = static_cast<std::uint8_t>(l4);
  layers.payload = layers.l4;
  layers.family = AddressFamily::kIpv4;
  layers.payload_length = static_cast<std::uint16_t>(there - header_bytes);
  if (offset == 0) {
    parse_transport(frame, {l4, total - header_bytes, there - header_bytes, ip[9], fragmented}, layers);
  } else {
    layers.flags = static_cast<std::uint16_t>(layers.flags | tunnel_of_protocol(ip[9]));
  }
  if (fragmented && splits_header(offset, ip[9], layers)) {
    layers.flags = static_cast<std::uint16_t>(layers.flags | kSplitHeader);
  }
}

/// ARP for IPv4 over Ethernet (RFC 826), whole.
bool is_arp(const std::uint8_t* arp, std::uint32_t length) {
  constexpr std::uint32_t kBytes = 28;
  return length >= kBytes && load_be16(arp) == 1 && load_be16(arp + 2) == kEtherTypeIpv4 && arp[4] == 6 && arp[5] == 4;
}

/// The group addresses 01-80-C2-00-00-00 to -0F, of which nothing passes a bridge (IEEE 802.1Q-2022, table 8-1).
bool is_reserved_group(const std::uint8_t* mac) {
  return load_be32(mac) == 0x0180C200U && mac[4] == 0 && mac[5] <= 0x0F;
}

/// The group addresses of CDP, VTP, DTP and UDLD, and of a spanning tree per VLAN.
bool is_cisco_group(const std::uint8_t* mac) {
  return load_be32(mac) == 0x01000CCCU && mac[4] == 0xCC && (mac[5] == 0xCC || mac[5] == 0xCD);
}

/// Control protocols that are spoken to these addresses. Nothing that carries IP: a frame to them with anything else
/// inside is no control frame.
bool is_control(const std::uint8_t* frame, std::uint16_t type, const std::uint8_t* body, std::uint32_t length) {
  if (is_cisco_group(frame)) {  // LLC of SNAP, then Cisco's OUI
    return type <= kMaxLlcLength && length >= 8 && load_be32(body) == 0xAAAA0300U && load_be16(body + 4) == 0x000C;
  }
  if (!is_reserved_group(frame)) {
    return false;
  }
  switch (type) {
    case 0x8808:  // MAC control: pause
    case 0x8809:  // slow protocols: LACP, OAM
    case 0x888E:  // EAPOL
    case 0x88CC:  // LLDP
    case 0x88F5:  // MVRP
    case 0x88F7:  // PTP
      return true;
    default:
      return type <= kMaxLlcLength && length >= 3 && body[0] == 0x42 && body[1] == 0x42 && body[2] == 0x03;  // BPDU
  }
}

}  // namespace

Layers parse(const std::uint8_t* frame, std::uint32_t length) {
  Layers layers{};
  if (length < kEthernetBytes) {
    return layers;
  }
  const auto [type, l3] = ether_type_of(frame, length);
  if (type == kEtherTypeIpv4) {
    parse_ipv4_at(frame, length, l3, layers);
  } else if (type == kEtherTypeArp ? is_arp(frame + l3, length - l3)
                                   : is_control(frame, type, frame + l3, length - l3)) {
    layers.flags = kLinkLocal;
  }
  return layers;
}

Layers parse_ipv4(const std::uint8_t* datagram, std::uint32_t length) {
  Layers layers{};
  parse_ipv4_at(datagram, length, 0, layers);
  return layers;
}

ShownPorts ports_of_cut_header(const std::uint8_t* frame, Layers const& layers) {
  constexpr std::uint32_t kPortsBytes = 4;
  const std::uint8_t* ip = frame + layers.l3;
  if ((layers.flags & kIpv4) == 0 || (ip[9] != kProtocolTcp && ip[9] != kProtocolUdp)) {
    return {ShownPorts::State::kNone, {}};
  }
  if ((load_be16(ip + 6) & kFragmentOffset) != 0) {
    const bool overwrites = (layers.flags & kSplitHeader) != 0;
    return {overwrites ? ShownPorts::State::kHidden : ShownPorts::State::kNone, {}};
  }
  if (layers.payload + layers.payload_length < layers.l4 + kPortsBytes) {
    return {ShownPorts::State::kHidden, {}};
  }
  return {ShownPorts::State::kShown, load_ports(frame + layers.l4)};
}

std::uint64_t checksum_add(const std::uint8_t* bytes, std::size_t length, std::uint64_t start) {
  // the sum of words read in either byte order differs in the order of its own bytes alone (RFC 1071, 2 (B))
  std::uint64_t native = 0;
  std::size_t i = 0;
  for (; i + 4 <= length; i += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes + i, sizeof word);
    native += word;
  }
  while ((native >> 16) != 0) {
    native = (native & 0xFFFFU) + (native >> 16);
  }
  const auto folded = static_cast<std::uint16_t>(native);
  std::uint64_t sum = start + load_be16(reinterpret_cast<const std::uint8_t*>(&folded));
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
