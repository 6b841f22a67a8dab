// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace catena::match {

/// A set of numbers (IPv4 addresses in host order, ports) as sorted, disjoint, closed intervals that do not touch.
/// Lists, negations and variables are evaluated once, when the rules are read, and a packet costs one binary search.
/// Thread rule: immutable after construction.
class IntervalSet {
 public:
  struct Interval {
    std::uint32_t first;
    std::uint32_t last;
    auto operator<=>(Interval const&) const = default;
  };

  /// The empty set.
  IntervalSet() = default;
  /// [first, last]; first <= last.
  IntervalSet(std::uint32_t first, std::uint32_t last) : intervals_{{first, last}} {}

  /// The union of `intervals`, in any order.
  static IntervalSet of(std::vector<Interval> intervals);

  /// The numbers in [0, maximum] outside this set.
  IntervalSet complement(std::uint32_t maximum) const;
  /// The numbers of this set outside `other`; `maximum` is the largest number of either.
  IntervalSet without(IntervalSet const& other, std::uint32_t maximum) const;

  bool contains(std::uint32_t value) const;
  bool empty() const { return intervals_.empty(); }
  /// True if the set is [0, maximum].
  bool is_all(std::uint32_t maximum) const {
    return intervals_.size() == 1 && intervals_.front() == Interval{0, maximum};
  }
  std::vector<Interval> const& intervals() const { return intervals_; }
  auto operator<=>(IntervalSet const&) const = default;

 private:
  std::vector<Interval> intervals_;
};

}  // namespace catena::match
