// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/text.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace catena {

/// The decimal number `text`, up to `maximum`: digits without sign, blanks and leading zeros. nullopt for any other
/// text: programs read 010 as 10 or as 8. Every reader of decimal numbers in text that people write uses this function,
/// except readers of files in the form of another program. Thread rule: pure.
inline std::optional<std::uint64_t> parse_decimal(std::string_view text,
                                                  std::uint64_t maximum = std::numeric_limits<std::uint64_t>::max()) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  const bool is_number = error == std::errc() && last == end && value <= maximum;
  return is_number && (text.size() == 1 || text[0] != '0') ? std::optional(value) : std::nullopt;
}

/// For messages about `text`, which has one or several numbers: "; write 1-443 without leading zeros" about "01-0443".
/// Empty if no number in it has leading zeros. Thread rule: pure.
inline std::string leading_zeros_advice(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const bool has_address = std::count(text.begin(), text.end(), '.') >= 3;
  std::string without;
  bool is_inside = false;  // of a number with its fraction, or of a word, which may have digits, as 0x06
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_leading = text[i] == '0' && !is_inside && i + 1 < text.size() && is_digit(text[i + 1]);
    if (!is_leading) {
      without += text[i];
      is_inside = is_digit(text[i]) || is_letter(text[i]) || (text[i] == '.' && !has_address);
    }
  }
  return without.size() == text.size() ? std::string() : concat("; write ", without, " without leading zeros");
}

}  // namespace catena
