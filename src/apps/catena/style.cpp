// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/style.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

namespace catena::cli {

bool has_colours(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(descriptor) == 1 && (no_color == nullptr || *no_color == '\0');
}

void print(std::ostream& out, std::string_view text, bool coloured) {
  constexpr std::string_view kYellow = "\x1b[33m";
  constexpr std::string_view kPlain = "\x1b[0m";
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const bool warns = coloured && (line.starts_with("WARNING") || line.find("NOT BALANCED") != std::string_view::npos);
    out << (warns ? kYellow : "") << line << (warns ? kPlain : "") << '\n';
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  out.flush();
}

}  // namespace catena::cli
