// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// The positions of a frame's headers: the result of parsing it once. The same struct on the host and on devices.
namespace catena::packet {

inline constexpr u8 kProtocolIcmp = 1;
inline constexpr u8 kProtocolTcp = 6;
inline constexpr u8 kProtocolUdp = 17;
inline constexpr u8 kProtocolEsp = 50;

/// Bits of Layers::flags. The bit of a header is set only if the header is inside the frame and consistent, so an NF
/// may then read the header without another length check. Only the options of a TCP header may be cut off, see
/// kSplitHeader. A frame without kIpv4 has kLinkLocal or no bit at all.
enum LayerFlag : u16 {
  kIpv4 = 1,       ///< RFC 791 header, options too: version 4, IHL >= 5, total length not below the header's
  kTcp = 2,        ///< TCP header complete, options too; with kTruncated and kSplitHeader its first 20 bytes
  kUdp = 4,        ///< UDP header complete, its length field within the IP payload
  kIcmp = 8,       ///< ICMP: the first 8 bytes are in the frame
  kPorts = 16,     ///< kTcp or kUdp: source and destination port can be read
  kFragment = 32,  ///< part of a fragmented datagram; only the first part can have kTcp, kUdp, kIcmp
  /// With kIpv4: a fragment that hides a transport header or could overwrite one. Either the first fragment of a TCP,
  /// UDP or ICMP datagram with an incomplete header (RFC 1858 section 3), or a TCP fragment that begins at byte 8 (RFC
  /// 3128). Also any frame with kTcp that ends inside the options.
  kSplitHeader = 64,
  /// Without kIpv4, the same bit: a control frame not forwarded by bridges or routers; see is_link_local().
  kLinkLocal = 64,
  kTruncated = 128,      ///< the IPv4 total length exceeds the frame: cut by a capture's snap length, or false
  kSurplus = 256,        ///< with kUdp: the datagram continues after the UDP payload (the surplus area of RFC 9868)
  kTunnelBits = 7 << 9,  ///< with kIpv4: three bits with the Tunnel of the datagram, see tunnel_of()
};

/// A tunnel whose packets carry others that parse() does not find: by the protocol of the IPv4 header, or by the
/// destination port of UDP when the packet arrived.
enum class Tunnel : u8 {
  kNone = 0,
  kGre = 1,     ///< protocol 47 (RFC 2784)
  kIpip = 2,    ///< protocol 4 (RFC 2003)
  k6in4 = 3,    ///< protocol 41 (RFC 4213)
  kVxlan = 4,   ///< UDP port 4789 (RFC 7348)
  kGeneve = 5,  ///< UDP port 6081 (RFC 8926)
  kTeredo = 6,  ///< UDP port 3544 (RFC 4380)
};
constexpr Tunnel tunnel_of(u32 flags) { return static_cast<Tunnel>((flags & kTunnelBits) >> 9); }

/// Whether a frame with these LayerFlags is ARP for IPv4; MAC control, LACP, EAPOL, LLDP, PTP, MVRP or a spanning tree
/// BPDU to a group address not forwarded by bridges (IEEE 802.1Q-2022 table 8-1); or Cisco's CDP, VTP, DTP, UDLD or
/// BPDU of a VLAN to Cisco's group addresses.
constexpr bool is_link_local(u32 flags) { return (flags & (kIpv4 | kLinkLocal)) == kLinkLocal; }

enum class AddressFamily : u8 {
  kNone = 0,  ///< no IP header
  kIpv4 = 4,
};

/// Offsets are from the first byte of the frame. All members but the flags are 0 without kIpv4. The length of the
/// datagram is no member: l3_length() derives it. One per packet crosses to devices and to NF processes, so 8 bytes.
struct Layers {
  u8 l3;                 ///< IPv4 header
  u8 l4;                 ///< first byte after the IPv4 header and its options
  u8 payload;            ///< after the TCP, UDP or ICMP header, else as l4
  AddressFamily family;  ///< of the header at l3
  u16 flags;             ///< LayerFlag bits
  u16 payload_length;    ///< bytes; ends with the datagram (IP total length, UDP length), never in Ethernet padding
};
static_assert(sizeof(Layers) == 8);

/// Completeness of the ports' header (TCP, UDP) in a datagram or fragment.
enum class PortsHeader : u8 {
  kNone,   ///< no such header: another protocol than TCP and UDP, or a fragment after the first
  kWhole,  ///< complete
  kSplit,  ///< a part, in a fragment with kSplitHeader, also of ICMP
  kCut,    ///< a part, not in a fragment: cut off, or a length field of the header is wrong
};

/// Whether a packet with these LayerFlags has kWhole.
constexpr bool has_whole_ports(u32 flags) { return (flags & (kPorts | kSplitHeader)) == kPorts; }

/// `flags`: LayerFlags, with kIpv4. `protocol`: from the IPv4 header.
constexpr PortsHeader ports_header(u32 flags, u32 protocol) {
  if (has_whole_ports(flags)) {
    return PortsHeader::kWhole;
  }
  const bool is_fragment = (flags & kFragment) != 0;
  if ((flags & kSplitHeader) != 0) {
    return is_fragment ? PortsHeader::kSplit : PortsHeader::kCut;
  }
  const bool has_ports = protocol == kProtocolTcp || protocol == kProtocolUdp;
  return has_ports && !is_fragment ? PortsHeader::kCut : PortsHeader::kNone;
}

}  // namespace catena::packet
