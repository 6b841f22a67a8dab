// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace catena::match {

/// All matches of one packet: the patterns found, and the ends of their occurrences (bytes from the start of the
/// payload to the first byte after the occurrence). Most packets need the patterns only, so index() sorts the ends on
/// demand. Reused from packet to packet: the packet path does not allocate once the lists have grown. Not thread safe.
class MatchTable {
 public:
  explicit MatchTable(std::uint32_t patterns) : seen_(patterns, 0), ends_(patterns) {}

  void add(std::uint32_t pattern, std::uint32_t end) {
    if (seen_[pattern] != round_) {
      seen_[pattern] = round_;
      found_.push_back(pattern);
    }
    matches_.push_back({pattern, static_cast<std::uint16_t>(end)});
  }
  /// Sorts the ends by pattern, because matchers guarantee no order. Call before ends(), after the last add().
  void index() {
    if (indexed_) {
      return;
    }
    indexed_ = true;
    for (Match const& match : matches_) {
      ends_[match.pattern].push_back(match.end);
    }
    for (std::uint32_t pattern : found_) {
      std::vector<std::uint16_t>& ends = ends_[pattern];
      if (!std::is_sorted(ends.begin(), ends.end())) {
        std::sort(ends.begin(), ends.end());
      }
    }
  }
  void clear() {
    if (indexed_) {
      for (std::uint32_t pattern : found_) {
        ends_[pattern].clear();
      }
      indexed_ = false;
    }
    found_.clear();
    matches_.clear();
    if (++round_ == 0) {
      std::fill(seen_.begin(), seen_.end(), 0U);
      round_ = 1;
    }
  }

  struct Match {
    std::uint32_t pattern;
    std::uint16_t end;
  };
  /// Every match, in no order.
  std::span<const Match> matches() const { return matches_; }
  /// The patterns found, each once, in no order.
  std::span<const std::uint32_t> found() const { return found_; }
  /// The ends of the pattern's occurrences, ascending.
  std::span<const std::uint16_t> ends(std::uint32_t pattern) const { return ends_[pattern]; }

 private:
  std::vector<std::uint32_t> seen_;  ///< the last round in which each pattern was found
  std::uint32_t round_ = 1;
  std::vector<std::uint32_t> found_;
  std::vector<Match> matches_;
  std::vector<std::vector<std::uint16_t>> ends_;
  bool indexed_ = false;
};

}  // namespace catena::match
