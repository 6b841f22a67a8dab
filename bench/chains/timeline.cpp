// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/timeline.hpp"

#include "bench/common/spread.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

namespace catena::bench {
namespace {

/// Adds what lies in the picture.
class RowFiller {
 public:
  explicit RowFiller(std::int64_t from_ns) : from_ns_(from_ns) {}
  void add(TimeRow& row, std::size_t kind, trace::Span const& span) const {
    const double begin = static_cast<double>(span.begin_ns - from_ns_) / kNsPerUs;
    const double end = static_cast<double>(span.end_ns - from_ns_) / kNsPerUs;
    if (end >= 0 && begin <= kTimelineUs) {
      row.boxes.push_back({kind, begin, end});
    }
  }

 private:
  std::int64_t from_ns_;
};

/// Of the spans the begin that is nearest to `ns`: on a slow machine nothing may happen around the middle of a run.
std::int64_t nearest_begin(std::span<const runtime::StageTrace> stages, std::int64_t ns) {
  std::optional<std::int64_t> nearest;
  for (runtime::StageTrace const& stage : stages) {
    for (trace::Span const& span : stage.log->spans()) {
      if (!nearest || std::abs(span.begin_ns - ns) < std::abs(*nearest - ns)) {
        nearest = span.begin_ns;
      }
    }
  }
  return nearest.value_or(ns);
}

}  // namespace

std::vector<std::string> timeline_kinds() {
  // fill first: a stage delivers a launch while it fills another one, and that is to be seen upon it
  return {"fill", "submit", "deliver", "to device", "kernel", "to host", "work"};
}

std::vector<TimeRow> timeline_rows(std::span<const runtime::StageTrace> stages) {
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  for (runtime::StageTrace const& stage : stages) {
    for (trace::Span const& span : stage.log->spans()) {
      first_ns = std::min(first_ns, span.begin_ns);
      last_ns = std::max(last_ns, span.end_ns);
    }
  }
  const std::int64_t middle_ns = nearest_begin(stages, first_ns / 2 + last_ns / 2);
  const std::vector<std::string> kinds = timeline_kinds();
  std::vector<TimeRow> rows;
  const RowFiller filler(middle_ns - static_cast<std::int64_t>(kTimelineUs * kNsPerUs / 2));
  for (runtime::StageTrace const& stage : stages) {
    std::vector<TimeRow> tracks;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      for (trace::Span const& span : stage.log->spans()) {
        while (tracks.size() <= span.track) {
          tracks.push_back({tracks.empty() ? stage.name : concat(stage.name, " device ", tracks.size()), {}});
        }
        if (span.what == kinds[kind]) {
          filler.add(tracks[span.track], kind, span);
        }
      }
    }
    std::move(tracks.begin(), tracks.end(), std::back_inserter(rows));
  }
  return rows;
}

}  // namespace catena::bench
