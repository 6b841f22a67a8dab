// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/numbers.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace catena::nf {

/// A whole number as in Catena's files, 53 or 0x35; nullopt for any other text. Any thread.
inline std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const absl::string_view digits(text.data(), text.size());
  const bool is_number =
      text.starts_with("0x") ? absl::SimpleHexAtoi(digits, &value) : absl::SimpleAtoi(digits, &value);
  return is_number ? std::optional(value) : std::nullopt;
}

}  // namespace catena::nf
