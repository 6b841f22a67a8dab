// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_launch.hpp"

#include "pipeline/unit_group.hpp"

#include <utility>

namespace catena::runtime {

DeviceLaunch::DeviceLaunch(std::unique_ptr<nf::DeviceBatch> batch, memory::PacketPool& pool,
                           std::uint32_t group_packets, std::uint32_t lane)
    : batch_(std::move(batch)), pool_(&pool), group_packets_(group_packets) {
  slots_.reserve(batch_->room());
  timeline_.lane = lane;
}

void DeviceLaunch::begin(std::uint32_t number, Clock::time_point now) {
  since_ = now;
  timeline_.number = number;
  timeline_.packets = 0;
  timeline_.first_unit_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
}

void DeviceLaunch::add(memory::Unit& unit) {
  units_.push_back(&unit);
  open_packets_ += unit.count;
  timeline_.packets += unit.count;
  if (open_packets_ + pool_->unit_packets() > group_packets_) {
    close_group();
  }
}

void DeviceLaunch::close_group() {
  const std::size_t first = group_ends_.empty() ? 0 : group_ends_.back();
  if (first < units_.size()) {
    batch_->add(batch_of(*pool_, std::span(units_).subspan(first), slots_));
    group_ends_.push_back(units_.size());
    open_packets_ = 0;
  }
}

Status DeviceLaunch::submit(Clock::time_point now) {
  since_ = now;
  Status status = batch_->submit();
  state_ = status.ok() ? State::kRunning : State::kFailed;
  return status;
}

Status DeviceLaunch::advance() { return state_ == State::kRunning ? checked(batch_->advance()) : absl::OkStatus(); }

Result<bool> DeviceLaunch::poll() {
  Result<bool> done = batch_->poll();
  CATENA_RETURN_IF_ERROR(checked(done.status()));
  if (*done) {
    state_ = State::kAtRest;
  }
  return done;
}

/// After an error it has failed, now.
Status DeviceLaunch::checked(Status status) {
  if (!status.ok()) {
    state_ = State::kFailed;
    since_ = Clock::now();
  }
  return status;
}

void DeviceLaunch::clear() {
  units_.clear();
  group_ends_.clear();
  slots_.clear();
}

}  // namespace catena::runtime
