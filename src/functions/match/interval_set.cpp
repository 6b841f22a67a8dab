// SPDX-License-Identifier: Apache-2.0
#include "functions/match/interval_set.hpp"

#include <algorithm>
#include <iterator>

namespace catena::match {

IntervalSet IntervalSet::of(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  IntervalSet result;
  for (Interval const& next : intervals) {
    if (!result.intervals_.empty()) {
      Interval& open = result.intervals_.back();
      if (next.first <= open.last || next.first - open.last == 1) {
        open.last = std::max(open.last, next.last);
        continue;
      }
    }
    result.intervals_.push_back(next);
  }
  return result;
}

IntervalSet IntervalSet::complement(std::uint32_t maximum) const {
  IntervalSet result;
  std::uint32_t next = 0;
  for (Interval const& interval : intervals_) {
    if (interval.first > next) {
      result.intervals_.push_back({next, interval.first - 1});
    }
    if (interval.last >= maximum) {
      return result;
    }
    next = interval.last + 1;
  }
  result.intervals_.push_back({next, maximum});
  return result;
}

IntervalSet IntervalSet::without(IntervalSet const& other, std::uint32_t maximum) const {
  std::vector<Interval> outside = complement(maximum).intervals_;
  outside.insert(outside.end(), other.intervals_.begin(), other.intervals_.end());
  return of(std::move(outside)).complement(maximum);
}

bool IntervalSet::contains(std::uint32_t value) const {
  auto after = std::upper_bound(intervals_.begin(), intervals_.end(), value,
                                [](std::uint32_t v, Interval const& interval) { return v < interval.first; });
  return after != intervals_.begin() && std::prev(after)->last >= value;
}

}  // namespace catena::match
