// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/launch.hpp"

namespace catena::dataplane {

/// One launch of a DeviceStage. All times in ns of the host's steady clock.
struct LaunchTrace {
  std::uint32_t lane = 0;  ///< which of the stage's batches it was: launches of one lane follow one another
  std::uint32_t packets = 0;
  std::int64_t first_unit_ns = 0;    ///< its first unit was taken
  std::int64_t submit_begin_ns = 0;  ///< it was full, or due
  std::int64_t submit_end_ns = 0;    ///< everything was enqueued
  std::int64_t ready_ns = 0;         ///< the stage came to look, and found it done
  std::int64_t delivered_ns = 0;     ///< its units had gone on
  /// On the device; none where it had nothing to do there.
  std::optional<kernel::LaunchTimes> device;
};

/// The first launches of one stage. Takes its memory when it is made. One thread writes; others may read once the stage
/// is finished.
class TraceLog {
 public:
  static constexpr std::size_t kMaxLaunches = 20'000;

  TraceLog() { launches_.reserve(kMaxLaunches); }
  bool full() const { return launches_.size() == kMaxLaunches; }
  /// Does nothing where it is full.
  void add(LaunchTrace const& launch) {
    if (!full()) {
      launches_.push_back(launch);
    }
  }
  /// Keeps the first error: why times are missing.
  void fail(Status const& status) { status_.Update(status); }

  std::vector<LaunchTrace> const& launches() const { return launches_; }
  Status const& status() const { return status_; }

 private:
  std::vector<LaunchTrace> launches_;
  Status status_;
};

}  // namespace catena::dataplane
