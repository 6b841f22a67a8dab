// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/time_rows.hpp"
#include "pipeline/chrome_trace.hpp"

#include <span>
#include <string>
#include <vector>

namespace catena::bench {

/// Length of the displayed part of a run.
inline constexpr double kTimelineUs = 1000;

/// Names of the box kinds of timeline_rows(), indexed by TimeBox::kind.
std::vector<std::string> timeline_kinds();

/// Chart rows for kTimelineUs microseconds around the span that begins nearest to the middle of the run. Per stage: a
/// row of host work, then rows of device work, as many as its launches run concurrently. Boxes are in microseconds from
/// the start of that part and may extend beyond it. A stage without spans has no row. Pure.
std::vector<TimeRow> timeline_rows(std::span<const runtime::StageTrace> stages);

}  // namespace catena::bench
