// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace catena::match {

/// A literal for the matchers to find.
struct Pattern {
  std::string bytes;  ///< not empty; in lower case if nocase
  bool nocase = false;
};

/// Converts ASCII letters to lower case, as nocase patterns are stored.
inline void fold_case(std::string& bytes) {
  for (char& c : bytes) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
}

/// The distinct literals of a rule file or string list. A pattern's number is its position; matches contain numbers.
class PatternSet {
 public:
  /// The number of the pattern. Adds a new pattern.
  std::uint32_t add(std::string const& bytes, bool nocase) {
    const auto [found, added] = numbers_.try_emplace({bytes, nocase}, static_cast<std::uint32_t>(patterns_.size()));
    if (added) {
      patterns_.push_back({bytes, nocase});
    }
    return found->second;
  }
  std::vector<Pattern> const& patterns() const { return patterns_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(patterns_.size()); }

 private:
  std::vector<Pattern> patterns_;
  std::map<std::pair<std::string, bool>, std::uint32_t> numbers_;
};

}  // namespace catena::match
