// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace catena {

/// Text of users for one line of the log: line feeds become "; ", other control characters "?". So users can neither
/// forge log lines nor send terminal escape sequences.
inline std::string log_line(std::string_view text) {
  constexpr unsigned char kFirstPrintable = 0x20;
  constexpr unsigned char kDelete = 0x7f;
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "; ";
    } else {
      line += byte < kFirstPrintable || byte == kDelete ? '?' : c;
    }
  }
  return line;
}

}  // namespace catena
