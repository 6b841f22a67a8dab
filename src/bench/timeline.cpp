// SPDX-License-Identifier: Apache-2.0
#include "bench/timeline.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

namespace catena::bench {
namespace {

enum Kind : std::size_t { kFill, kSubmit, kDeliver, kToDevice, kKernel, kToHost };
constexpr double kNsPerUs = 1000;

/// Adds what lies in the picture.
class RowFiller {
 public:
  explicit RowFiller(std::int64_t from_ns) : from_ns_(from_ns) {}
  void add(TimeRow& row, Kind kind, std::int64_t begin_ns, std::int64_t end_ns) const {
    const double begin = static_cast<double>(begin_ns - from_ns_) / kNsPerUs;
    const double end = static_cast<double>(end_ns - from_ns_) / kNsPerUs;
    if (end >= 0 && begin <= kTimelineUs) {
      row.boxes.push_back({kind, begin, end});
    }
  }

 private:
  std::int64_t from_ns_;
};

}  // namespace

std::vector<std::string> timeline_kinds() { return {"fill", "submit", "deliver", "to device", "kernel", "to host"}; }

std::vector<TimeRow> timeline_rows(std::span<const chain::StageTrace> stages) {
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  for (chain::StageTrace const& stage : stages) {
    if (!stage.launches.empty()) {
      first_ns = std::min(first_ns, stage.launches.front().first_unit_ns);
      last_ns = std::max(last_ns, stage.launches.back().delivered_ns);
    }
  }
  std::vector<TimeRow> rows;
  const RowFiller filler(first_ns / 2 + last_ns / 2 - static_cast<std::int64_t>(kTimelineUs * kNsPerUs / 2));
  for (chain::StageTrace const& stage : stages) {
    if (stage.launches.empty()) {
      continue;
    }
    TimeRow host{stage.stage, {}};
    std::vector<TimeRow> lanes;
    // a stage delivers a launch while it fills another one: that is to be seen upon it
    for (dataplane::LaunchTrace const& launch : stage.launches) {
      filler.add(host, kFill, launch.first_unit_ns, launch.submit_begin_ns);
    }
    for (dataplane::LaunchTrace const& launch : stage.launches) {
      filler.add(host, kSubmit, launch.submit_begin_ns, launch.submit_end_ns);
      filler.add(host, kDeliver, launch.ready_ns, launch.delivered_ns);
      if (!launch.device) {
        continue;
      }
      while (lanes.size() <= launch.lane) {
        lanes.push_back({concat(stage.stage, " device ", lanes.size() + 1), {}});
      }
      TimeRow& lane = lanes[launch.lane];
      filler.add(lane, kToDevice, launch.device->begin_ns, launch.device->moved_in_ns);
      filler.add(lane, kKernel, launch.device->moved_in_ns, launch.device->computed_ns);
      filler.add(lane, kToHost, launch.device->computed_ns, launch.device->moved_back_ns);
    }
    rows.push_back(std::move(host));
    std::move(lanes.begin(), lanes.end(), std::back_inserter(rows));
  }
  return rows;
}

}  // namespace catena::bench
