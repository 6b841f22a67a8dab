// SPDX-License-Identifier: Apache-2.0
#include "nf/testing/unknown_key.hpp"

#include <catena/core/text.hpp>

#include <algorithm>

namespace catena::nf::testing {
namespace {

constexpr std::string_view kBlank = " \n";

std::size_t line_at_end(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
}

/// Where the first thing that is neither blank nor a comment opens a mapping in flow style; npos if it does not.
std::size_t start_of_flow(std::string_view yaml) {
  std::size_t at = yaml.find_first_not_of(kBlank);
  while (at != std::string_view::npos && yaml[at] == '#') {
    at = yaml.find_first_not_of(kBlank, yaml.find('\n', at));
  }
  return at != std::string_view::npos && yaml[at] == '{' ? at : std::string_view::npos;
}

}  // namespace

WithUnknownKey with_unknown_key(std::string_view yaml) {
  const std::string entry = concat(kUnknownKey, ": 1");
  if (const std::size_t start = start_of_flow(yaml); start != std::string_view::npos) {
    const std::string_view before = yaml.substr(0, start + 1);
    return {concat(before, entry, ", ", yaml.substr(start + 1)), line_at_end(before)};  // the last comma may be there
  }
  const std::string before = concat(yaml, yaml.empty() || yaml.back() == '\n' ? "" : "\n");
  return {concat(before, entry, "\n"), line_at_end(before)};
}

}  // namespace catena::nf::testing
