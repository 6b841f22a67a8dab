// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace catena {

/// The bytes of the printable UTF-8 character at the start of `text`, which is not empty. 0: the first byte begins no
/// such character: it is a control, invalid UTF-8, or part of an invisible character, e.g. a byte order mark or a mark
/// that reverses the direction of the text after it.
inline std::size_t printable_bytes(std::string_view text) {
  using Range = std::pair<std::uint32_t, std::uint32_t>;
  constexpr std::array<Range, 10> kInvisible{{{0x80, 0x9F},
                                              {0xAD, 0xAD},
                                              {0x61C, 0x61C},
                                              {0x180E, 0x180E},
                                              {0x200B, 0x200F},
                                              {0x2028, 0x202E},
                                              {0x2060, 0x206F},
                                              {0xFEFF, 0xFEFF},
                                              {0xFFF9, 0xFFFB},
                                              {0xE0000, 0xE0FFF}}};
  constexpr std::array<std::uint32_t, 5> kFirstOfLength{0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) {
    return first >= ' ' && first <= '~' ? 1 : 0;
  }
  const std::size_t length = first >> 5 == 0x6 ? 2 : first >> 4 == 0xE ? 3 : first >> 3 == 0x1E ? 4 : 0;
  if (length == 0 || text.size() < length) {
    return 0;
  }
  std::uint32_t code = first & (0x7FU >> length);
  for (const char c : text.substr(1, length - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >> 6 != 0x2) {
      return 0;
    }
    code = code << 6 | (byte & 0x3FU);
  }
  const bool is_character = code >= kFirstOfLength[length] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  const bool is_invisible = std::any_of(kInvisible.begin(), kInvisible.end(), [code](Range const& range) {
    return range.first <= code && code <= range.second;
  });
  return is_character && !is_invisible ? length : 0;
}

/// `text` for people, on one line: printable characters of UTF-8 unchanged, other bytes as \t, \r, \n or \x1b. So a
/// text from a file or another process can neither control a terminal nor imitate a line of ours, and its marks are
/// seen. A backslash is unchanged, so a text that is escaped twice is the same as one escaped once. Thread rule: pure.
inline std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = printable_bytes(text);
    const char c = text[0];
    if (bytes > 0) {
      result += text.substr(0, bytes);
    } else if (c == '\t' || c == '\r' || c == '\n') {
      result += c == '\t' ? "\\t" : c == '\r' ? "\\r" : "\\n";
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

/// Likewise for a text of several lines: line feeds are unchanged.
inline std::string escaped_lines(std::string_view text) {
  std::string result;
  while (true) {
    const std::size_t end = text.find('\n');
    result += escaped(text.substr(0, end));
    if (end == std::string_view::npos) {
      return result;
    }
    result += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace catena
