// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace catena::packet {

/// virtio_net_hdr (virtio 1.1, section 5.1.6), before frames of TAPs and packet sockets; the kernel's header does not
/// compile as C++. Numbers in host order.
struct VnetHeader {
  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t header_bytes = 0;   ///< of Ethernet, IP and TCP; with gso_type
  std::uint16_t segment_bytes = 0;  ///< data of a segment; with gso_type
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;  ///< from checksum_start
};
static_assert(sizeof(VnetHeader) == 10);

inline constexpr std::uint8_t kVnetNeedsChecksum = 1;
inline constexpr std::uint8_t kVnetDataValid = 2;
inline constexpr std::uint8_t kVnetGsoTcp4 = 1;
inline constexpr std::uint8_t kVnetGsoTcp6 = 4;

}  // namespace catena::packet
