// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/trace.hpp"
#include "gpu/launch/launch_times.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <optional>

namespace catena::runtime {

/// The times of a launch on the host, in ns of the steady clock.
struct LaunchTimeline {
  std::uint32_t number = 0;
  std::uint32_t lane = 0;  ///< launches of a lane are sequential
  std::uint32_t packets = 0;
  std::int64_t first_unit_ns = 0;    ///< its first unit was taken
  std::int64_t submit_begin_ns = 0;  ///< it was full, or due; only if traced
  std::int64_t submit_end_ns = 0;    ///< everything was enqueued; only if traced
};

/// Writes launches to the trace of a stage, on the tracks described at DeviceStageOptions::trace. One thread.
class LaunchTrace {
 public:
  /// `log` outlives this. Null: nothing is traced.
  explicit LaunchTrace(trace::SpanLog* log) : log_(log) {}

  bool is_on() const { return log_ != nullptr; }
  /// Whether add() would keep the launch. Ask before measuring.
  bool wants(LaunchTimeline const& launch) const { return is_on() && log_->wants(launch.first_unit_ns); }
  /// Adds a completed launch, found done at `ready_ns` and delivered at `delivered_ns`. `on_device`: nullopt if it
  /// needed no device; an error is kept as the reason of missing spans. Precondition: is_on().
  void add(LaunchTimeline const& launch, std::int64_t ready_ns, std::int64_t delivered_ns,
           Result<std::optional<kernel::LaunchTimes>> const& on_device);

 private:
  trace::SpanLog* log_;
};

}  // namespace catena::runtime
