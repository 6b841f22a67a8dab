// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace catena::device {

/// FNV-1a with 128 bits (RFC 9923): identifies file contents and cache keys, also across processes. It resists
/// accidents, not attackers: never use it for data from untrusted parties.
class Hash128 {
 public:
  Hash128& add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      state_ = (state_ ^ static_cast<unsigned __int128>(byte)) * kPrime;
    }
    return *this;
  }
  Hash128& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
  /// Adds the length first, so that differently split lists of texts have different hashes.
  Hash128& add_field(std::string_view text) {
    const std::uint64_t length = text.size();
    add(std::as_bytes(std::span(&length, 1)));
    return add(text);
  }

  std::uint64_t low() const { return static_cast<std::uint64_t>(state_); }
  std::uint64_t high() const { return static_cast<std::uint64_t>(state_ >> 64); }
  /// 32 hexadecimal digits.
  std::string hex() const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (int shift = 124; shift >= 0; shift -= 4) {
      text += kDigits[static_cast<std::size_t>(state_ >> shift) & 15U];
    }
    return text;
  }

 private:
  static constexpr unsigned __int128 kPrime =
      (static_cast<unsigned __int128>(0x0000000001000000ULL) << 64) | 0x000000000000013BULL;
  unsigned __int128 state_ = (static_cast<unsigned __int128>(0x6C62272E07BB0142ULL) << 64) | 0x62B821756295C58DULL;
};

}  // namespace catena::device
