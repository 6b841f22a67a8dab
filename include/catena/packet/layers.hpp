// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/types.hpp>

/// Where the headers of a frame are: the result of parsing it once. The same struct on the host and on devices.
namespace catena::packet {

/// Bits of Layers::flags. A bit is set only where the whole header it speaks of lies inside the frame and is
/// consistent, so an NF that sees it may read the header without another length check.
enum LayerFlag : u8 {
  kIpv4 = 1,       ///< RFC 791 header: version 4, IHL >= 5, total length inside the frame
  kTcp = 2,        ///< TCP header complete, options too
  kUdp = 4,        ///< UDP header complete, its length field within the IP payload
  kIcmp = 8,       ///< ICMP: the first 8 bytes are there
  kPorts = 16,     ///< kTcp or kUdp: source and destination port can be read
  kFragment = 32,  ///< part of a fragmented datagram; only the first part can have kTcp, kUdp, kIcmp
  kEsp = 64,       ///< ESP (protocol 50): SPI and sequence number are there
  kVlan = 128,     ///< one or two VLAN tags stand before the network header
};

/// Offsets are from the first byte of the frame. All are 0 where kIpv4 is not set.
struct Layers {
  u8 l3;               ///< IPv4 header
  u8 l4;               ///< first byte after the IPv4 header and its options
  u8 payload;          ///< after the TCP, UDP or ICMP header, else as l4
  u8 flags;            ///< LayerFlag bits
  u16 payload_length;  ///< bytes; ends with the datagram (IP total length, UDP length), never in Ethernet padding
  u16 l3_length;       ///< IPv4 total length, bytes
};
static_assert(sizeof(Layers) == 8);

}  // namespace catena::packet
