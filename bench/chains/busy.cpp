// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/busy.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace catena::bench {
namespace {

using Interval = std::pair<std::int64_t, std::int64_t>;

/// How long any of them lasts.
std::int64_t length_of_union(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::int64_t length = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (Interval const& interval : intervals) {
    const std::int64_t from = std::max(interval.first, end);
    length += std::max<std::int64_t>(interval.second - from, 0);
    end = std::max(end, interval.second);
  }
  return length;
}

/// The spans by what they are about, and from when to when there are any.
class Sorter {
 public:
  void add(std::string_view stage, trace::SpanLog const& log) {
    std::vector<Interval> host;
    for (trace::Span const& span : log.spans()) {
      const std::string_view what = span.what;
      if (what == "fill") {
        continue;  // packets wait for the launch to be full
      }
      auto& intervals = what == "kernel" ? kernels_ : what == "to device" || what == "to host" ? moves_ : host;
      intervals.emplace_back(span.begin_ns, span.end_ns);
      first_ = std::min(first_, span.begin_ns);
      last_ = std::max(last_, span.end_ns);
    }
    kept_one_in_ = std::max(kept_one_in_, log.one_in());
    stages_.emplace_back(stage, std::move(host));
  }
  std::vector<BusyShare> shares() const {
    if (first_ >= last_) {
      return {};
    }
    std::vector<BusyShare> shares{{"moves", share(moves_)}, {"kernels", share(kernels_)}};
    for (auto const& [stage, intervals] : stages_) {
      shares.push_back({stage, share(intervals)});
    }
    return shares;
  }

 private:
  double share(std::vector<Interval> const& intervals) const {
    return std::min(
        1.0, static_cast<double>(length_of_union(intervals) * kept_one_in_) / static_cast<double>(last_ - first_));
  }

  std::vector<Interval> kernels_;
  std::vector<Interval> moves_;
  std::vector<std::pair<std::string, std::vector<Interval>>> stages_;
  std::int64_t first_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t kept_one_in_ = 1;
};

}  // namespace

std::vector<BusyShare> busy_shares(std::span<const runtime::StageTrace> stages) {
  Sorter sorter;
  for (runtime::StageTrace const& stage : stages) {
    sorter.add(stage.name, *stage.log);
  }
  return sorter.shares();
}

BusyShare const* busiest(std::span<const BusyShare> shares) {
  const auto found = std::max_element(shares.begin(), shares.end(),
                                      [](BusyShare const& a, BusyShare const& b) { return a.share < b.share; });
  return found == shares.end() ? nullptr : &*found;
}

}  // namespace catena::bench
