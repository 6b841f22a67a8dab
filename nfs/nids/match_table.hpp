// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace catena::nids {

/// All matches of one packet: for each pattern the ends of its occurrences (bytes from the start of the payload to
/// the first byte behind the occurrence). Reused from packet to packet, so the packet path does not allocate once the
/// lists have grown. Not thread safe.
class MatchTable {
 public:
  explicit MatchTable(std::uint32_t patterns) : ends_(patterns) {}

  void add(std::uint32_t pattern, std::uint32_t end) {
    std::vector<std::uint16_t>& ends = ends_[pattern];
    if (ends.empty()) {
      found_.push_back(pattern);
    }
    ends.push_back(static_cast<std::uint16_t>(end));
  }
  /// Puts the ends of each pattern in order. Call once after the last add(): no matcher promises an order.
  void sort() {
    for (std::uint32_t pattern : found_) {
      std::vector<std::uint16_t>& ends = ends_[pattern];
      if (!std::is_sorted(ends.begin(), ends.end())) {
        std::sort(ends.begin(), ends.end());
      }
    }
  }
  void clear() {
    for (std::uint32_t pattern : found_) {
      ends_[pattern].clear();
    }
    found_.clear();
  }

  /// Patterns that occur, each once, in no order.
  std::span<const std::uint32_t> found() const { return found_; }
  /// The ends of the pattern's occurrences, ascending after sort().
  std::span<const std::uint16_t> ends(std::uint32_t pattern) const { return ends_[pattern]; }

 private:
  std::vector<std::vector<std::uint16_t>> ends_;
  std::vector<std::uint32_t> found_;
};

}  // namespace catena::nids
