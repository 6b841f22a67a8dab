// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// Where the headers of a frame are: the result of parsing it once. The same struct on the host and on devices.
namespace catena::packet {

/// Bits of Layers::flags. The bit of a header is set only where the header lies inside the frame and is consistent, so
/// an NF that sees it may read the header without another length check. A frame without kIpv4 has kLinkLocal or no bit
/// at all.
enum LayerFlag : u8 {
  kIpv4 = 1,       ///< RFC 791 header, options too: version 4, IHL >= 5, total length not below the header's
  kTcp = 2,        ///< TCP header complete, options too; of a truncated frame its first 20 bytes
  kUdp = 4,        ///< UDP header complete, its length field within the IP payload
  kIcmp = 8,       ///< ICMP: the first 8 bytes are there
  kPorts = 16,     ///< kTcp or kUdp: source and destination port can be read
  kFragment = 32,  ///< part of a fragmented datagram; only the first part can have kTcp, kUdp, kIcmp
  /// With kIpv4: a fragment that hides a transport header or could overwrite one. It is the first of a TCP, UDP or ICMP
  /// datagram and the header in it is not whole (RFC 1858 section 3), or of TCP and begins at byte 8 (RFC 3128).
  kSplitHeader = 64,
  /// Without kIpv4, the same bit: a control frame that no bridge or router forwards; see is_link_local().
  kLinkLocal = 64,
  kTruncated = 128,  ///< the IPv4 total length says more than the frame has: cut by a capture's snap length, or a lie
};

/// Whether a frame with these LayerFlags is ARP for IPv4; MAC control, LACP, EAPOL, LLDP, PTP, MVRP or a spanning tree
/// BPDU to a group address that bridges do not forward (IEEE 802.1Q-2022 table 8-1); or Cisco's CDP, VTP, DTP, UDLD or
/// BPDU of a VLAN to Cisco's group addresses.
constexpr bool is_link_local(u32 flags) { return (flags & (kIpv4 | kLinkLocal)) == kLinkLocal; }

/// Offsets are from the first byte of the frame. All are 0 where kIpv4 is not set.
struct Layers {
  u8 l3;               ///< IPv4 header
  u8 l4;               ///< first byte after the IPv4 header and its options
  u8 payload;          ///< after the TCP, UDP or ICMP header, else as l4
  u8 flags;            ///< LayerFlag bits
  u16 payload_length;  ///< bytes; ends with the datagram (IP total length, UDP length), never in Ethernet padding
  u16 l3_length;       ///< bytes of the IPv4 datagram: its total length; with kTruncated, those that the frame has
};
static_assert(sizeof(Layers) == 8);

}  // namespace catena::packet
