// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace catena {

/// The IPv4 address in `text`, host order: four decimal numbers up to 255 without leading zeros, as inet_pton() reads
/// them. nullopt for any other text: programs read 010.0.0.1, 0x0a.0.0.1 and 10.1 as different addresses. Every reader
/// of an IPv4 address uses this function. Thread rule: pure.
inline std::optional<std::uint32_t> parse_ipv4_address(std::string_view text) {
  std::array<char, INET_ADDRSTRLEN> terminated{};
  in_addr address{};
  if (text.size() >= terminated.size() || text.find('\0') != std::string_view::npos) {
    return std::nullopt;
  }
  std::copy(text.begin(), text.end(), terminated.begin());
  return ::inet_pton(AF_INET, terminated.data(), &address) == 1 ? std::optional(ntohl(address.s_addr)) : std::nullopt;
}

}  // namespace catena
