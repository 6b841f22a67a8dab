// SPDX-License-Identifier: Apache-2.0
#include "bench/nca/times.hpp"

#include "bench/common/spread.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <cstddef>

namespace catena::bench {
namespace {

constexpr std::size_t kTimelineBuffers = 8;

enum BoxKind : std::size_t { kMovesIn, kComputes, kMovesBack };

/// Time in which any of some intervals runs, or of two kinds both.
class Sweep {
 public:
  Sweep(std::int64_t from_ns, std::int64_t to_ns) : from_ns_(from_ns), to_ns_(to_ns) {}
  void add(bool is_copy, std::int64_t begin_ns, std::int64_t end_ns) {
    const std::int64_t begin = std::clamp(begin_ns, from_ns_, to_ns_);
    const std::int64_t end = std::clamp(end_ns, from_ns_, to_ns_);
    edges_.push_back({begin, is_copy, 1});
    edges_.push_back({end, is_copy, -1});
  }
  Overlap take() {
    std::sort(edges_.begin(), edges_.end(), [](Edge const& a, Edge const& b) { return a.ns < b.ns; });
    Overlap shares;
    int copies = 0;
    int kernels = 0;
    std::int64_t last = from_ns_;
    for (Edge const& edge : edges_) {
      const double share = static_cast<double>(edge.ns - last) / static_cast<double>(to_ns_ - from_ns_);
      shares.copy += copies > 0 ? share : 0;
      shares.kernel += kernels > 0 ? share : 0;
      shares.both += copies > 0 && kernels > 0 ? share : 0;
      (edge.is_copy ? copies : kernels) += edge.step;
      last = edge.ns;
    }
    return shares;
  }

 private:
  struct Edge {
    std::int64_t ns;
    bool is_copy;
    int step;
  };
  std::int64_t from_ns_;
  std::int64_t to_ns_;
  std::vector<Edge> edges_;
};

}  // namespace

Overlap overlap_of(std::span<const nca_times> buffers, std::int64_t from_ns, std::int64_t to_ns) {
  Sweep sweep(from_ns, to_ns);
  for (nca_times const& times : buffers) {
    sweep.add(true, times.begin_ns, times.moved_in_ns);
    sweep.add(false, times.moved_in_ns, times.computed_ns);
    sweep.add(true, times.computed_ns, times.moved_back_ns);
  }
  return sweep.take();
}

std::vector<std::string> nca_timeline_kinds() { return {"to device", "kernel", "to host"}; }

std::pair<std::vector<TimeRow>, double> nca_timeline(std::span<const nca_times> buffers, std::int64_t middle_ns) {
  std::vector<nca_times> shown(buffers.begin(), buffers.end());
  std::sort(shown.begin(), shown.end(), [](auto const& a, auto const& b) { return a.begin_ns < b.begin_ns; });
  auto first = std::find_if(shown.begin(), shown.end(), [&](auto const& times) { return times.begin_ns >= middle_ns; });
  first -= std::min<std::ptrdiff_t>(first - shown.begin(), kTimelineBuffers / 2);
  shown.erase(shown.begin(), first);
  shown.resize(std::min(shown.size(), kTimelineBuffers));
  std::vector<TimeRow> rows;
  std::vector<std::int64_t> ends;  // of each row
  double length = 0;
  for (nca_times const& times : shown) {
    const auto at = [&](std::int64_t ns) { return static_cast<double>(ns - shown.front().begin_ns) / kNsPerUs; };
    std::size_t row = 0;
    while (row < ends.size() && ends[row] > times.begin_ns) {
      ++row;
    }
    if (row == ends.size()) {
      rows.push_back({concat("buffer ", row + 1), {}});
      ends.push_back(0);
    }
    ends[row] = times.moved_back_ns;
    rows[row].boxes.push_back({kMovesIn, at(times.begin_ns), at(times.moved_in_ns)});
    rows[row].boxes.push_back({kComputes, at(times.moved_in_ns), at(times.computed_ns)});
    rows[row].boxes.push_back({kMovesBack, at(times.computed_ns), at(times.moved_back_ns)});
    length = std::max(length, at(times.moved_back_ns));
  }
  return {std::move(rows), length};
}

}  // namespace catena::bench
