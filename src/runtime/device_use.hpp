// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>

namespace catena::runtime {

/// Of a unit that was put together from units of several: nothing of it counts as being on a device.
inline constexpr std::uint32_t kMixedEpochs = std::numeric_limits<std::uint32_t>::max();

/// Whether a chain uses its device: one for all device stages of the chain, so that they leave the plan together. A
/// stage that keeps the device while a later one does without would leave bytes there that nobody brings back. Any
/// thread.
class DeviceUse {
 public:
  /// Of the units that hold something on this device (Unit::device_epoch): no other DeviceUse has the same.
  std::uint32_t epoch() const { return epoch_; }
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
  static std::uint32_t next_epoch() {
    static std::atomic<std::uint32_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  const std::uint32_t epoch_ = next_epoch();
  std::atomic<bool> allowed_{true};
  std::atomic<bool> answers_{true};
  mutable std::mutex mutex_;
  Status reason_;
};

}  // namespace catena::runtime
