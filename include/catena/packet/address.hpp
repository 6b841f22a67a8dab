// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace catena::packet {

/// An IPv6 address, or an IPv4 address in its IPv4-mapped form ::ffff:a.b.c.d (RFC 4291, section 2.5.5.2). 16 bytes;
/// the default is ::. The order is the order of the bytes, so IPv4 addresses are in the order of their numbers. Thread
/// rule: a value.
class Address {
 public:
  constexpr Address() = default;
  /// `address`: host order.
  static constexpr Address of_v4(std::uint32_t address) { return {0, kMapped << 32 | address}; }
  /// The upper and the lower 64 bits, host order.
  static constexpr Address of_words(std::uint64_t high, std::uint64_t low) { return {high, low}; }

  /// Reads what inet_pton() reads, and nothing else: an IPv4 address as four decimal numbers without leading zeros, or
  /// an IPv6 address, without a zone. nullopt for any other text. `::ffff:192.0.2.1` is the same address as
  /// `192.0.2.1`.
  static std::optional<Address> parse(std::string_view text);

  constexpr bool is_v4() const { return high_ == 0 && low_ >> 32 == kMapped; }
  /// The IPv4 address, host order. Precondition: is_v4().
  constexpr std::uint32_t v4() const { return static_cast<std::uint32_t>(low_); }
  constexpr std::uint64_t high() const { return high_; }
  constexpr std::uint64_t low() const { return low_; }

  constexpr auto operator<=>(Address const&) const = default;

 private:
  static constexpr std::uint64_t kMapped = 0xFFFF;

  constexpr Address(std::uint64_t high, std::uint64_t low) : high_(high), low_(low) {}

  std::uint64_t high_ = 0;
  std::uint64_t low_ = 0;
};
static_assert(sizeof(Address) == 16);

/// The text of inet_ntop(): "192.0.2.1" of an IPv4 address, "2001:db8::1" of any other. Thread rule: pure.
std::string to_string(Address const& address);

}  // namespace catena::packet
