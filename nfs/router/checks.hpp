// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/headers.hpp>

#include <cstdint>
#include <cstring>
#include <span>

#include "router.layout.hpp"

/// Checks of a header by a router on the CPU; the kernel has its own. Pure.
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

/// check_addresses() with the table of addresses that are no source.
inline std::uint32_t check_addresses(std::uint32_t src, std::uint32_t dst, std::span<const std::uint32_t> no_sources,
                                     bool forwards_multicast) {
  const bool is_no_source =
      is_in_table(src, static_cast<std::uint32_t>(no_sources.size()), [&](std::uint32_t i) { return no_sources[i]; });
  return check_addresses(src, dst, is_no_source, forwards_multicast);
}

}  // namespace catena::router
