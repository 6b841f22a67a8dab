// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow.hpp"

#include <algorithm>

namespace catena::runtime {

CongestionMonitor::State CongestionMonitor::next_state(std::uint64_t packets) const {
  // a state lasts until a batch was taken: with one limit for both ways those in front would start and stop all the
  // time
  const State before = state();
  if (packets > limits_.share || (before == State::kFull && packets + limits_.batch > limits_.share)) {
    return State::kFull;
  }
  const std::uint64_t crowd = limits_.slow_down + (limits_.share - limits_.slow_down) / 2;
  const bool has_share = limits_.share > limits_.slow_down;
  if (has_share && (packets > crowd || (before >= State::kCrowded && packets + limits_.batch > crowd))) {
    return State::kCrowded;
  }
  const bool is_congested = packets > limits_.slow_down || (before != State::kFree && packets > limits_.fasten_up);
  return is_congested ? State::kCongested : State::kFree;
}

void CongestionMonitor::look(std::chrono::steady_clock::time_point now) {
  if (now - checked_ < period_) {
    return;
  }
  checked_ = now;
  const std::uint64_t packets = queue_->packets();
  most_ = std::max(std::uint64_t{most_}, packets);
  const State before = state();
  const State after = next_state(packets);
  if (after == before) {
    return;
  }
  state_.store(after, std::memory_order_relaxed);
  if (before == State::kFree) {
    slow_downs_ += receivers_;
  } else if (after == State::kFree) {
    fasten_ups_ += receivers_;
  }
}

bool RateController::is_on() const {
  if (tx_ != nullptr && tx_->is_on()) {
    return false;
  }
  bool is_any_free = behind_.empty();
  for (CongestionMonitor const* monitor : behind_) {
    const CongestionMonitor::State state = monitor->state_now();
    if (state == CongestionMonitor::State::kFull) {
      return false;
    }
    is_any_free = is_any_free || state == CongestionMonitor::State::kFree;
  }
  return is_any_free;
}

bool SourcePauses::any() const {
  const std::scoped_lock lock(mutex_);
  return paused_ > 0;
}

std::uint64_t SourcePauses::count() const {
  const std::scoped_lock lock(mutex_);
  return count_;
}

std::chrono::nanoseconds SourcePauses::time() const {
  const std::scoped_lock lock(mutex_);
  return paused_ == 0 ? time_ : time_ + (std::chrono::steady_clock::now() - began_);
}

void SourcePauses::begin() {
  {
    const std::scoped_lock lock(mutex_);
    ++count_;
    if (paused_++ > 0) {
      return;
    }
    began_ = std::chrono::steady_clock::now();
  }
  changed_.ring();
}

void SourcePauses::end() {
  {
    const std::scoped_lock lock(mutex_);
    if (--paused_ > 0) {
      return;
    }
    time_ += std::chrono::steady_clock::now() - began_;
  }
  changed_.ring();
}

bool FlowGate::may_take() {
  if (monitor_ != nullptr) {
    monitor_->look(std::chrono::steady_clock::now());
  }
  const bool is_paused = !controller_.is_on();
  pause(is_paused);
  return !is_paused;
}

void FlowGate::end() {
  pause(false);
  if (tx_ != nullptr) {
    tx_->end();
  }
}

void FlowGate::pause(bool is_paused) {
  if (is_paused == was_paused()) {
    return;
  }
  was_paused_.store(is_paused, std::memory_order_relaxed);
  pauses_ += is_paused ? 1 : 0;
  if (of_source_ != nullptr && is_paused) {
    of_source_->begin();
  } else if (of_source_ != nullptr) {
    of_source_->end();
  }
}

}  // namespace catena::runtime
