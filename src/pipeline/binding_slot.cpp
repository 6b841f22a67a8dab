// SPDX-License-Identifier: Apache-2.0
#include "pipeline/binding_slot.hpp"

namespace catena::runtime {

BindingSlot::~BindingSlot() {
  delete next_.load();
  delete reclaimable_.load();
}

Status BindingSlot::device_status() const {
  const std::scoped_lock lock(mutex_);
  return current_->use().reason();
}

DeviceBinding& BindingSlot::latest() const {
  const std::scoped_lock lock(mutex_);
  return *current_;  // only take() replaces it
}

void BindingSlot::offer(std::unique_ptr<DeviceBinding> binding) {
  const std::scoped_lock lock(mutex_);
  const bool is_same_device = &binding->use() == &current_->use();
  if (is_same_device && !current_->use().allowed()) {
    return;  // lost meanwhile: another device may be bound already
  }
  is_moving_on_.store(is_same_device, std::memory_order_relaxed);
  delete next_.exchange(binding.release(), std::memory_order_release);
}

std::unique_ptr<DeviceBinding> BindingSlot::reclaim() {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<DeviceBinding> binding(reclaimable_.exchange(nullptr, std::memory_order_acquire));
  if (binding == nullptr) {
    binding.reset(next_.exchange(nullptr, std::memory_order_acquire));
    is_moving_on_.store(false, std::memory_order_relaxed);
  }
  return binding;
}

bool BindingSlot::take() {
  if ((current_->use().allowed() && !is_moving_on()) || reclaimable_.load(std::memory_order_relaxed) != nullptr) {
    return false;
  }
  const std::scoped_lock lock(mutex_);
  DeviceBinding* const next = next_.load(std::memory_order_acquire);
  if (next == nullptr || (&next->use() == &current_->use()) != current_->use().allowed()) {
    return false;
  }
  next->continue_after(*current_);
  reclaimable_.store(current_.release(), std::memory_order_release);
  current_.reset(next);
  is_moving_on_.store(false, std::memory_order_relaxed);
  // last: a reader that finds the binding taken finds what was there before
  next_.store(nullptr, std::memory_order_release);
  return true;
}

}  // namespace catena::runtime
