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

/// A plain list of strings, one per line. A string is named by its line, counted from 0.
class StringList {
 public:
  /// `text`: the file's bytes; each line but its line feed is a string, byte by byte. `file` is its name in messages.
  /// InvalidArgument with file:line:column for an empty line, a line that ends in a carriage return (the string would
  /// never be found), or one of more than kMaxContentBytes bytes.
  static Result<StringList> parse(std::string_view text, std::string const& file, bool nocase, PatternSet& patterns);

  std::size_t size() const { return patterns_.size(); }
  /// The pattern of a line.
  std::uint32_t pattern(std::uint32_t line) const { return patterns_[line]; }

  /// Appends the lines of the strings that were found to `lines`, each once, in no order. Returns the number of
  /// occurrences, each of each line counted.
  std::uint64_t match(MatchTable const& matches, std::vector<std::uint32_t>& lines) const;

 private:
  std::vector<std::uint32_t> patterns_;  ///< by line
  std::vector<std::vector<std::uint32_t>> lines_by_pattern_;
};

}  // namespace catena::match
