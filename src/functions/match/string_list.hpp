// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/match/match_table.hpp"
#include "functions/match/pattern_set.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace catena::match {

/// A plain list of strings, one per line. A string is identified by its line, counted from 0.
class StringList {
 public:
  /// `text`: the file's bytes; each line without its line feed is a string, byte by byte. `file` is its name in
  /// messages. InvalidArgument with file:line:column for an empty line, a line ending in a carriage return (the string
  /// would never be found), or a line of more than kMaxContentBytes bytes.
  static Result<StringList> parse(std::string_view text, std::string const& file, bool nocase, PatternSet& patterns);

  std::size_t size() const { return patterns_.size(); }
  /// The pattern of a line.
  std::uint32_t pattern(std::uint32_t line) const { return patterns_[line]; }

  /// Appends the lines of the found strings to `lines`, each once, in no order. Returns the number of occurrences,
  /// counted for each line.
  std::uint64_t match(MatchTable const& matches, std::vector<std::uint32_t>& lines) const;

 private:
  std::vector<std::uint32_t> patterns_;  ///< by line
  std::vector<std::vector<std::uint32_t>> lines_by_pattern_;
};

}  // namespace catena::match
