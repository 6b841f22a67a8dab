// SPDX-License-Identifier: Apache-2.0
#include "pipeline/host_recovery.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <utility>

namespace catena::runtime {

using Clock = std::chrono::steady_clock;

Status HostRecovery::too_late() const {
  return absl::DeadlineExceededError(concat("stage ", stage_, " waited more than ",
                                            std::chrono::duration_cast<std::chrono::milliseconds>(limit_).count(),
                                            " ms for device ", device_nf_->device().info().name));
}

HostRecovery::Outcome HostRecovery::lost(Status const& why) {
  is_reading_ = false;
  if (!std::exchange(warned_, true)) {
    spdlog::warn("NF {}: packets held only by device {} cannot be recovered: {}", stage_,
                 device_nf_->device().info().name, why.ToString());
  }
  if (absl::IsDeadlineExceeded(why)) {
    gave_up_ = true;
    use_->give_up();
  }
  return Outcome::kLost;
}

Status HostRecovery::start(memory::Unit const& unit) {
  if (!read_back_) {
    CATENA_ASSIGN_OR_RETURN(read_back_, copy::ReadBack::create(device_nf_->device(), *device_nf_->shared(),
                                                               only_on_device_, pool_->unit_packets()));
  }
  CATENA_RETURN_IF_ERROR(read_back_->start(pool_->batch(unit)));
  is_reading_ = true;
  since_ = Clock::now();
  return absl::OkStatus();
}

HostRecovery::Outcome HostRecovery::poll(memory::Unit const& unit) {
  if (only_on_device_ == 0) {
    return Outcome::kSaved;
  }
  if (!is_reading_) {
    if (!use_->answers() || !device_nf_->device().failed().ok()) {
      return Outcome::kLost;
    }
    if (const Status started = start(unit); !started.ok()) {
      return lost(started);
    }
  }
  const Result<bool> done = read_back_->poll();
  if (!done.ok()) {
    return lost(done.status());
  }
  if (!*done) {
    return Clock::now() - since_ > limit_ ? lost(too_late()) : Outcome::kWaiting;
  }
  is_reading_ = false;
  read_back_->apply();
  return Outcome::kSaved;
}

}  // namespace catena::runtime
