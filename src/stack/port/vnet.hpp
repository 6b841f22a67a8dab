// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "packet/vnet_header.hpp"
#include "stack/tcp/frame.hpp"
#include "stack/tcp/tcp.hpp"

namespace catena::stack {

inline constexpr std::size_t kMaxFrame = 65536 + 128;  ///< bytes: an IP packet, Ethernet and a VLAN tag

/// The virtio header of a frame to be sent.
inline packet::VnetHeader vnet_header(OutgoingFrame const& frame) {
  packet::VnetHeader header{};
  if (frame.checksum_start != 0) {
    header.flags = packet::kVnetNeedsChecksum;
    header.checksum_start = frame.checksum_start;
    header.checksum_offset = kTcpChecksumAt;
  }
  if (frame.segment_bytes != 0) {
    header.gso_type = load_be16(&frame.parts[0][12]) == kTypeIpv4 ? packet::kVnetGsoTcp4 : packet::kVnetGsoTcp6;
    header.header_bytes = frame.header_bytes;
    header.segment_bytes = frame.segment_bytes;
  }
  return header;
}

/// Whether the sender vouches for a received frame, or its checksum is right.
inline bool is_intact(packet::VnetHeader const& header, std::span<const std::byte> frame) {
  return (header.flags & (packet::kVnetNeedsChecksum | packet::kVnetDataValid)) != 0 || has_right_checksum(frame);
}

}  // namespace catena::stack
