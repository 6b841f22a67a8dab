// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/time_rows.hpp"
#include "runtime/chrome_trace.hpp"

#include <span>
#include <string>
#include <vector>

namespace catena::bench {

/// Length of the part of a run that a picture shows.
inline constexpr double kTimelineUs = 1000;

/// What the boxes of timeline_rows() are, by TimeBox::kind.
std::vector<std::string> timeline_kinds();

/// kTimelineUs microseconds around what begins nearest to the middle of a run, as rows of a chart: for each stage what
/// the host does, then what the device does, in as many rows as launches of the stage run beside each other. Boxes are
/// in microseconds from the beginning of that part, and reach beyond it where they do. A stage without spans has no
/// row. Pure.
std::vector<TimeRow> timeline_rows(std::span<const runtime::StageTrace> stages);

}  // namespace catena::bench
