// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/device_binding.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <memory>
#include <mutex>

namespace catena::runtime {

/// The binding used by a polling thread, and its replacement by another thread, which never waits for packets: offer()
/// -> take(), by the polling thread -> reclaim(). The functions of the replacing thread are called by one at a time.
class BindingSlot {
 public:
  explicit BindingSlot(std::unique_ptr<DeviceBinding> first) : current_(std::move(first)) {}
  ~BindingSlot();
  BindingSlot(BindingSlot const&) = delete;
  BindingSlot& operator=(BindingSlot const&) = delete;

  // Any thread.
  /// OK, or why the current device is out of use.
  Status device_status() const;
  /// Whether the last binding offered was taken.
  bool has_taken() const { return next_.load(std::memory_order_acquire) == nullptr; }

  // The replacing thread.
  /// Valid until it is taken from reclaim().
  DeviceBinding& latest() const;
  /// Offers `binding`, in place of one not taken yet. Destroys it if it is for the current device, and this is out of
  /// use.
  void offer(std::unique_ptr<DeviceBinding> binding);
  /// The binding before the last one taken, or one not taken; null: neither exists.
  std::unique_ptr<DeviceBinding> reclaim();

  // The polling thread.
  DeviceBinding& current() const { return *current_; }
  bool has_offer() const { return next_.load(std::memory_order_relaxed) != nullptr; }
  /// Whether the offered binding is for another part of the current device, which is in use: start no launch before
  /// take().
  bool is_moving_on() const { return is_moving_on_.load(std::memory_order_relaxed) && current_->use().allowed(); }
  /// Replaces the current binding by the offered one. False, with no change, if the current device is in use and the
  /// offer is for another device, or it is out of use and the offer is for it; or if the binding before was not
  /// reclaimed. Precondition: nothing uses the current one.
  bool take();

 private:
  std::unique_ptr<DeviceBinding> current_;  ///< never null
  mutable std::mutex mutex_;                ///< for other readers than the polling thread
  std::atomic<DeviceBinding*> next_{nullptr};
  std::atomic<bool> is_moving_on_{false};  ///< next_ is for the current device
  std::atomic<DeviceBinding*> reclaimable_{nullptr};
};

}  // namespace catena::runtime
