// SPDX-License-Identifier: Apache-2.0
#include <catena/kernel/launch_times.hpp>

#include <catena/core/text.hpp>

#include "kernel/launch_support.hpp"

#include <chrono>

namespace catena::kernel {

Result<std::shared_ptr<DeviceClock const>> DeviceClock::create(device::Stream& stream, std::string_view device) {
  using Clock = std::chrono::steady_clock;
  const std::shared_ptr<DeviceClock> clock(new DeviceClock());
  // the host's time is that at which the mark was seen ready: of several tries, the one that can be least late
  constexpr int kTries = 16;
  auto shortest = Clock::duration::max();
  for (int i = 0; i < kTries; ++i) {
    const Clock::time_point before = Clock::now();
    CATENA_ASSIGN_OR_RETURN(std::unique_ptr<device::Event> event, stream.mark());
    CATENA_RETURN_IF_ERROR(stream.flush());
    CATENA_RETURN_IF_ERROR(event->wait(kSetUpLimit, concat("the clock of ", device)));
    const Clock::time_point after = Clock::now();
    if (after - before < shortest) {
      shortest = after - before;
      clock->mark_ = std::move(event);
      clock->mark_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(after.time_since_epoch()).count();
    }
  }
  return clock;
}

Result<std::int64_t> DeviceClock::ns_of(device::Event& mark) const {
  CATENA_ASSIGN_OR_RETURN(const std::chrono::nanoseconds since, mark.since(*mark_));
  return mark_ns_ + since.count();
}

Status LaunchMarks::put(device::Stream& stream, Point point) {
  if (clock_ != nullptr) {
    CATENA_ASSIGN_OR_RETURN(marks_[point], stream.mark());
  }
  return absl::OkStatus();
}

Result<LaunchTimes> LaunchMarks::times(std::string_view kernel) const {
  if (marks_[kMovedBack] == nullptr) {
    return absl::FailedPreconditionError(concat("no launch of ", kernel, " was traced"));
  }
  // the longest of these times is the first: the others are exact beside it where the device keeps few digits
  CATENA_ASSIGN_OR_RETURN(const std::int64_t begin_ns, clock_->ns_of(*marks_[kBegin]));
  CATENA_ASSIGN_OR_RETURN(const std::chrono::nanoseconds moved_in, marks_[kMovedIn]->since(*marks_[kBegin]));
  CATENA_ASSIGN_OR_RETURN(const std::chrono::nanoseconds computed, marks_[kComputed]->since(*marks_[kBegin]));
  CATENA_ASSIGN_OR_RETURN(const std::chrono::nanoseconds moved_back, marks_[kMovedBack]->since(*marks_[kBegin]));
  return LaunchTimes{begin_ns, begin_ns + moved_in.count(), begin_ns + computed.count(), begin_ns + moved_back.count()};
}

}  // namespace catena::kernel
