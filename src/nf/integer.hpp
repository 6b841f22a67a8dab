// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/decimal.hpp>

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace catena::nf {

/// A whole number as in Catena's files, 53, -5 or 0x35; nullopt for any other text. Any thread.
inline std::optional<std::int64_t> parse_integer(std::string_view text) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    const bool is_number = error == std::errc() && last == text.data() + text.size() && value <= kMax;
    return is_number ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt;
  }
  const bool is_negative = text.starts_with('-');
  text.remove_prefix(is_negative || text.starts_with('+') ? 1 : 0);
  const std::optional<std::uint64_t> value = parse_decimal(text, kMax);
  if (!value) {
    return std::nullopt;
  }
  return is_negative ? -static_cast<std::int64_t>(*value) : static_cast<std::int64_t>(*value);
}

}  // namespace catena::nf
