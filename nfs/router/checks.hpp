// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/headers.hpp>

#include <cstdint>
#include <cstring>

#include "router.layout.hpp"

/// Checks by a router before the route lookup (RFC 1812). For the CPU; the kernel has its own. Pure.
namespace catena::router {

/// True if the header's checksum is correct (RFC 1812, section 5.2.2). `header_bytes`: options included, a multiple of
/// 4.
inline bool checksum_is_right(const std::uint8_t* header, std::uint32_t header_bytes) {
  // the sum of 16-bit words modulo 65535 is the same in either byte order and over wider words (RFC 1071, section 2)
  std::uint64_t sum = 0;
  for (std::uint32_t at = 0; at < header_bytes; at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, header + at, 4);
    sum += word;
  }
  sum = (sum & 0xFFFFFFFFU) + (sum >> 32);
  sum = (sum & 0xFFFFU) + (sum >> 16 & 0xFFFFU) + (sum >> 32);
  sum = (sum & 0xFFFFU) + (sum >> 16);
  return ((sum & 0xFFFFU) + (sum >> 16)) == 0xFFFFU;
}

/// True for addresses other than those of a single routable host: 0/8 and 127/8 (RFC 1812, section 5.3.7), link-local
/// 169.254/16 (RFC 3927, section 7), multicast, 240/4 with 255.255.255.255.
inline bool is_special(std::uint32_t address) {
  const std::uint32_t net = address >> 24;
  return net == 0 || net == 127 || net >= 224 || address >> 16 == 0xA9FE;
}

inline bool is_multicast(std::uint32_t address) { return address >> 28 == 0xE; }

/// Decision by a packet's addresses alone.
inline Decision check_addresses(std::uint32_t src, std::uint32_t dst, bool forwards_multicast) {
  if (is_special(src)) {
    return kMartianSource;
  }
  if (!is_special(dst)) {
    return kForward;
  }
  if (is_multicast(dst)) {
    // 224.0.0/24 never leaves its link (RFC 5771, section 4)
    return forwards_multicast && dst >> 8 != 0xE00000 ? kForward : kMulticast;
  }
  return dst == 0xFFFFFFFF ? kBroadcast : kMartianDestination;
}

}  // namespace catena::router
