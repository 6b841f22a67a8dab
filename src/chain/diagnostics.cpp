// SPDX-License-Identifier: Apache-2.0
#include "chain/diagnostics.hpp"

#include <absl/strings/str_split.h>

#include <vector>

namespace catena::chain {

void Diagnostics::add(Status const& status) {
  if (status.ok()) {
    return;
  }
  code_ = empty() ? status.code() : code_;
  for (std::string const& line : std::vector<std::string>(absl::StrSplit(status.message(), '\n'))) {
    add_line(line);
  }
}

void Diagnostics::add_line(std::string_view line) {
  constexpr std::string_view kUnknown = ": unknown key '";
  if (const std::size_t at = line.find(kUnknown); at != std::string_view::npos) {
    const std::string_view begin = line.substr(0, line.find('\'', at + kUnknown.size()));
    if (text_.find(begin) != std::string::npos) {
      return;
    }
  }
  text_ += text_.empty() ? "" : "\n";
  text_ += line;
}

}  // namespace catena::chain
