// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/decimal.hpp>
#include <catena/core/ipv4.hpp>
#include <catena/core/text.hpp>
#include <catena/packet/address.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace catena::packet {

/// An IPv4 prefix. Bits of `address` after the first `length` are kept as written.
struct Ipv4Prefix {
  std::uint32_t address = 0;  ///< host order
  std::uint8_t length = 32;

  /// Reads "10.1.0.0/16", or an address alone as a prefix of 32 bits. The address is one of parse_ipv4_address(), the
  /// length a number of parse_decimal() up to 32. nullopt for any other text.
  static std::optional<Ipv4Prefix> parse(std::string_view text) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    const std::optional<std::uint32_t> address = parse_ipv4_address(text.substr(0, slash));
    if (!address || slash == text.size()) {
      return address ? std::optional(Ipv4Prefix{*address, 32}) : std::nullopt;
    }
    const std::optional<std::uint64_t> length = parse_decimal(text.substr(slash + 1), 32);
    return length ? std::optional(Ipv4Prefix{*address, static_cast<std::uint8_t>(*length)}) : std::nullopt;
  }

  std::uint32_t mask() const { return length == 0 ? 0 : ~std::uint32_t{0} << (32 - length); }
  bool operator==(Ipv4Prefix const&) const = default;
};
/// "10.1.0.0/16".
inline std::string to_string(Ipv4Prefix const& prefix) {
  return concat(to_string(Address::of_v4(prefix.address)), "/", int{prefix.length});
}

}  // namespace catena::packet
