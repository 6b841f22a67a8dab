// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>

namespace catena::runtime {

/// Of a unit merged from parts with different epochs: no data of it counts as being on a device.
inline constexpr std::uint32_t kMixedEpochs = std::numeric_limits<std::uint32_t>::max();

/// Whether a chain uses its device. All device stages of the chain share one, so that they leave the plan together.
/// Otherwise a stage with the device, upstream of a stage without it, would leave bytes there for ever. Any thread.
class DeviceUse {
 public:
  /// Of the units with data on this device (Unit::device_epoch). Unique for each DeviceUse.
  std::uint32_t epoch() const { return epoch_; }
  /// Whether units with `epoch` have data on another device, which was used before this one.
  bool is_other(std::uint32_t epoch) const { return epoch != 0 && epoch != epoch_; }
  /// False once a stage has stopped it: no stage starts another launch.
  bool allowed() const { return allowed_.load(std::memory_order_acquire); }
  /// Takes the device out of use. True for the first call, whose reason is kept. Precondition: `reason` is not OK.
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
  /// The device exceeded its limit: no thread waits for it again, not even for bytes that it alone has.
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
