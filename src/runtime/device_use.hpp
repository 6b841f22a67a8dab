// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <atomic>
#include <mutex>

namespace catena::runtime {

/// Whether a chain uses its device: one for all device stages of the chain, so that they leave the plan together. A
/// stage that keeps the device while a later one does without would leave bytes there that nobody brings back. Any
/// thread.
class DeviceUse {
 public:
  /// False once a stage has stopped it: no stage starts another launch.
  bool allowed() const { return allowed_.load(std::memory_order_acquire); }
  /// Takes the device out of use. True for the first call, whose reason stays. Precondition: `reason` is not OK.
  bool stop(Status const& reason) {
    const std::scoped_lock lock(mutex_);
    if (!reason_.ok()) {
      return false;
    }
    reason_ = reason;
    allowed_.store(false, std::memory_order_release);
    return true;
  }
  /// OK, or why the device is out of use.
  Status reason() const {
    const std::scoped_lock lock(mutex_);
    return reason_;
  }
  /// The device did not answer within its limit: nobody waits for it again, not even for bytes that it alone has.
  void give_up() { answers_.store(false, std::memory_order_release); }
  bool answers() const { return answers_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> allowed_{true};
  std::atomic<bool> answers_{true};
  mutable std::mutex mutex_;
  Status reason_;
};

}  // namespace catena::runtime
