// SPDX-License-Identifier: Apache-2.0
#include "functions/match/string_list.hpp"

#include "functions/match/rule.hpp"

#include <catena/core/escape.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena::match {

Result<StringList> StringList::parse(std::string_view text, std::string const& file, bool nocase,
                                     PatternSet& patterns) {
  StringList list;
  std::uint32_t line = 0;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string bytes(text.substr(at, end - at));
    at = end + 1;
    const auto error = [&](std::string_view message) {
      return absl::InvalidArgumentError(
          escaped(fmt::format("{}:{}:{}: {}", file, line + 1, bytes.size() + 1, message)));
    };
    if (bytes.empty()) {
      return error("an empty line; remove it, each line is a string to look for");
    }
    if (bytes.back() == '\r') {
      return error("the line ends in a carriage return, which would be looked for; write line feeds only");
    }
    if (bytes.size() > kMaxContentBytes) {
      return error(fmt::format("a string has at most {} bytes", kMaxContentBytes));
    }
    if (nocase) {
      fold_case(bytes);
    }
    const std::uint32_t pattern = patterns.add(bytes, nocase);
    list.lines_by_pattern_.resize(patterns.size());
    list.lines_by_pattern_[pattern].push_back(line);
    list.patterns_.push_back(pattern);
  }
  return list;
}

std::uint64_t StringList::match(MatchTable const& matches, std::vector<std::uint32_t>& lines) const {
  std::uint64_t occurrences = 0;
  for (std::uint32_t pattern : matches.found()) {
    std::vector<std::uint32_t> const& own = lines_by_pattern_[pattern];
    lines.insert(lines.end(), own.begin(), own.end());
  }
  for (MatchTable::Match const& match : matches.matches()) {
    occurrences += lines_by_pattern_[match.pattern].size();
  }
  return occurrences;
}

}  // namespace catena::match
