// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/launches.hpp"

#include "bench/common/spread.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace catena::bench {
namespace {

constexpr std::int64_t kWarmUpParts = 4;  ///< one of so many parts of a run is warm-up

/// What a trace has of one launch.
struct Launch {
  std::uint32_t packets = 0;
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::size_t spans = 0;
  PhaseTimes us{};

  void add(std::size_t phase, trace::Span const& span) {
    packets = span.packets;
    begin_ns = std::min(begin_ns, span.begin_ns);
    us[phase] = static_cast<double>(span.end_ns - span.begin_ns) / kNsPerUs;
    ++spans;
  }
};

/// By number.
std::map<std::uint32_t, Launch> launches_of(trace::SpanLog const& log) {
  std::map<std::uint32_t, Launch> launches;
  for (trace::Span const& span : log.spans()) {
    const auto* const phase = std::find(kPhases.begin(), kPhases.end(), span.what);
    if (phase != kPhases.end()) {
      launches[span.number].add(static_cast<std::size_t>(phase - kPhases.begin()), span);
    }
  }
  return launches;
}

/// When the spans of all stages begin: the end of the first quarter of the time that they are spread over.
std::int64_t end_of_warm_up(std::span<const runtime::StageTrace> stages) {
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  for (runtime::StageTrace const& stage : stages) {
    for (trace::Span const& span : stage.log->spans()) {
      first_ns = std::min(first_ns, span.begin_ns);
      last_ns = std::max(last_ns, span.begin_ns);
    }
  }
  return last_ns < first_ns ? last_ns : first_ns + (last_ns - first_ns) / kWarmUpParts;
}

LaunchTimes times_of(std::string const& nf, trace::SpanLog const& log, std::int64_t from_ns) {
  LaunchTimes times;
  times.nf = nf;
  std::array<std::vector<double>, kPhases.size()> us;
  for (auto const& [number, launch] : launches_of(log)) {
    if (launch.spans != kPhases.size() || launch.begin_ns < from_ns) {
      continue;
    }
    ++times.launches;
    times.packets += launch.packets;
    for (std::size_t phase = 0; phase < kPhases.size(); ++phase) {
      us[phase].push_back(launch.us[phase]);
      times.total_us[phase] += launch.us[phase];
    }
  }
  for (std::size_t phase = 0; phase < kPhases.size(); ++phase) {
    times.median_us[phase] = spread_of(std::move(us[phase])).median;
  }
  return times;
}

}  // namespace

std::vector<LaunchTimes> launch_times(std::span<const runtime::StageTrace> stages) {
  const std::int64_t from_ns = end_of_warm_up(stages);
  std::vector<LaunchTimes> all;
  for (runtime::StageTrace const& stage : stages) {
    if (LaunchTimes times = times_of(stage.name, *stage.log, from_ns); times.launches > 0) {
      all.push_back(std::move(times));
    }
  }
  return all;
}

}  // namespace catena::bench
