// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <atomic>
#include <mutex>

namespace catena::device {

/// Whether a device is permanently lost, and the reason. The first reason is kept. Any thread.
class Health {
 public:
  /// Precondition: `reason` is not OK.
  void fail(Status const& reason) {
    const std::scoped_lock lock(mutex_);
    if (reason_.ok()) {
      reason_ = reason;
      failed_.store(true, std::memory_order_release);
    }
  }
  Status status() const {
    if (!failed_.load(std::memory_order_acquire)) {
      return absl::OkStatus();
    }
    const std::scoped_lock lock(mutex_);
    return reason_;
  }

 private:
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  Status reason_;
};

}  // namespace catena::device
