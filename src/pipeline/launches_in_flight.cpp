// SPDX-License-Identifier: Apache-2.0
#include "pipeline/launches_in_flight.hpp"

#include <utility>

namespace catena::runtime {
namespace {

std::int64_t to_ns(LaunchesInFlight::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

Status LaunchesInFlight::submit(DeviceLaunch& launch) {
  const Clock::time_point now = Clock::now();
  pacing_.submitted(now);
  Status status = launch.submit(now);
  if (trace_.is_on()) {
    launch.timeline().submit_begin_ns = to_ns(now);
    launch.timeline().submit_end_ns = to_ns(Clock::now());
  }
  launches_.push_back(&launch);
  return status;
}

Status LaunchesInFlight::advance() {
  for (DeviceLaunch* const launch : launches_) {
    CATENA_RETURN_IF_ERROR(launch->advance());
  }
  return absl::OkStatus();
}

Result<LaunchesInFlight::Outcome> LaunchesInFlight::poll() {
  DeviceLaunch& launch = *launches_.front();
  const bool is_traced = trace_.wants(launch.timeline());
  const std::int64_t checked_ns = is_traced ? to_ns(Clock::now()) : 0;
  CATENA_ASSIGN_OR_RETURN(const bool is_done, launch.poll());
  const Clock::duration took = Clock::now() - launch.since();
  if (is_done) {
    pacing_.completed(took);
    ready_ns_ = checked_ns;
    return Outcome::kDone;
  }
  if (took <= limit_ || launch.batch().is_moving()) {
    return Outcome::kWaiting;
  }
  launch.fail();
  return Outcome::kLate;
}

DeviceLaunch& LaunchesInFlight::pop() {
  DeviceLaunch& launch = *launches_.front();
  launches_.pop_front();
  if (const std::int64_t ready_ns = std::exchange(ready_ns_, 0); ready_ns != 0) {
    trace_.add(launch.timeline(), ready_ns, to_ns(Clock::now()), launch.batch().times());
  }
  return launch;
}

}  // namespace catena::runtime
