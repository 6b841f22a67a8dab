// SPDX-License-Identifier: Apache-2.0
#include "chain/error_list.hpp"

#include <absl/strings/str_split.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace catena::chain {
namespace {

/// Takes "123:" from the front of `text`.
std::optional<unsigned> take_number(std::string_view& text) {
  unsigned number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end == last || *end != ':') {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

nlohmann::ordered_json entry(std::string_view line) {
  // What a line quotes may be of any length and have any text: one pass, whatever it is.
  for (std::size_t colon = line.find(':', 1); colon != std::string_view::npos; colon = line.find(':', colon + 1)) {
    std::string_view rest = line.substr(colon + 1);
    const std::optional<unsigned> number = take_number(rest);
    if (!number) {
      continue;
    }
    const std::optional<unsigned> column = take_number(rest);
    if (!rest.empty() && rest.front() == ' ') {
      return {{"file", std::string(line.substr(0, colon))},
              {"line", *number},
              {"column", column ? nlohmann::ordered_json(*column) : nullptr},
              {"message", std::string(rest.substr(1))}};
    }
  }
  return {{"file", nullptr}, {"line", nullptr}, {"column", nullptr}, {"message", std::string(line)}};
}

}  // namespace

nlohmann::ordered_json errors_of(Status const& status) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const std::vector<std::string> lines = absl::StrSplit(status.message(), '\n', absl::SkipEmpty());
  for (std::string const& line : lines) {
    list.push_back(entry(line));
  }
  return list;
}

}  // namespace catena::chain
