// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch/launch_times.hpp"

#include <catena/core/text.hpp>

#include "gpu/copy/layout.hpp"

#include <chrono>

namespace catena::kernel {

Result<std::shared_ptr<DeviceClock const>> DeviceClock::create(device::Stream& stream, std::string_view device) {
  using Clock = std::chrono::steady_clock;
  const std::shared_ptr<DeviceClock> clock(new DeviceClock());
  // the host's time is that at which the timestamp was seen ready: of several tries, the one that can be least late
  constexpr int kTries = 16;
  auto shortest = Clock::duration::max();
  for (int i = 0; i < kTries; ++i) {
    const Clock::time_point before = Clock::now();
    CATENA_ASSIGN_OR_RETURN(std::unique_ptr<device::Event> event, stream.record_timestamp());
    CATENA_RETURN_IF_ERROR(stream.flush());
    CATENA_RETURN_IF_ERROR(event->wait(copy::kSetUpLimit, concat("the clock of ", device)));
    const Clock::time_point after = Clock::now();
    if (after - before < shortest) {
      shortest = after - before;
      clock->reference_ = std::move(event);
      clock->reference_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(after.time_since_epoch()).count();
    }
  }
  return clock;
}

Result<std::int64_t> DeviceClock::ns_of(device::Event& timestamp) const {
  CATENA_ASSIGN_OR_RETURN(const std::chrono::nanoseconds since, timestamp.since(*reference_));
  return reference_ns_ + since.count();
}

Status LaunchTimestamps::put(device::Stream& stream, Point point) {
  if (clock_ != nullptr) {
    CATENA_ASSIGN_OR_RETURN(own_[point], stream.record_timestamp());
    timestamps_[point] = own_[point].get();
  }
  return absl::OkStatus();
}

Result<LaunchTimes> LaunchTimestamps::times(std::string_view kernel) const {
  if (timestamps_[kMovedBack] == nullptr) {
    return absl::FailedPreconditionError(concat("no launch of ", kernel, " was traced"));
  }
  // the longest of these times is the first: the others are exact beside it where the device keeps few digits
  CATENA_ASSIGN_OR_RETURN(const std::int64_t begin_ns, clock_->ns_of(*timestamps_[kBegin]));
  CATENA_ASSIGN_OR_RETURN(const std::chrono::nanoseconds moved_in, timestamps_[kMovedIn]->since(*timestamps_[kBegin]));
  CATENA_ASSIGN_OR_RETURN(const std::chrono::nanoseconds computed, timestamps_[kComputed]->since(*timestamps_[kBegin]));
  CATENA_ASSIGN_OR_RETURN(const std::chrono::nanoseconds moved_back,
                          timestamps_[kMovedBack]->since(*timestamps_[kBegin]));
  return LaunchTimes{begin_ns, begin_ns + moved_in.count(), begin_ns + computed.count(), begin_ns + moved_back.count()};
}

}  // namespace catena::kernel
