// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_monitor.hpp"

#include "base/core/log_context.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace catena::runtime {

DeviceMonitor::DeviceMonitor(DeviceRecovery* recovery, GpuSharing* sharing,
                             std::function<share::TrafficSample()> traffic, Admit admit)
    : recovery_(recovery), sharing_(sharing), admit_(std::move(admit)) {
  if (sharing_ != nullptr) {
    sharing_->start(std::move(traffic), recovery_ != nullptr);
  }
  if (recovery_ != nullptr || (sharing_ != nullptr && sharing_->has_changes())) {
    thread_ = std::thread(in_log_context([this] { watch(); }));
  }
}

DeviceMonitor::~DeviceMonitor() {
  pause_.end();
  if (thread_.joinable()) {
    thread_.join();
  }
  if (sharing_ != nullptr) {
    sharing_->stop();
  }
  if (recovery_ != nullptr) {
    recovery_->count_last_losses();
  }
}

void DeviceMonitor::watch() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point next_check = Clock::now() + (sharing_ != nullptr ? sharing_->period() : GpuSharing::kNever);
  std::chrono::nanoseconds wait = next_check - Clock::now();
  while (
      pause_.sleep(recovery_ == nullptr ? wait : std::min<std::chrono::nanoseconds>(wait, DeviceRecovery::kPeriod))) {
    if (recovery_ != nullptr) {
      if (const std::unique_lock<std::mutex> lock = admit_()) {
        recovery_->look(pause_);
      }
    }
    if (sharing_ != nullptr && Clock::now() >= next_check) {
      next_check = Clock::now() + sharing_->look(pause_);
    }
    wait = next_check - Clock::now();
  }
}

}  // namespace catena::runtime
