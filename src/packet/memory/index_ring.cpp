// SPDX-License-Identifier: Apache-2.0
#include "packet/memory/index_ring.hpp"

#include <algorithm>
#include <thread>

namespace catena::memory {
namespace {

/// What a thread inside does takes less than this many looks at the lock, unless it lost its core.
constexpr std::uint32_t kSpinsBeforeYield = 64;

/// The end of a ring for one of several threads, for as long as it lives.
class EndLock {
 public:
  EndLock(std::atomic<bool>& lock, bool is_shared) : lock_(is_shared ? &lock : nullptr) {
    std::uint32_t spins = 0;
    while (lock_ != nullptr && lock_->exchange(true, std::memory_order_acquire)) {
      if (++spins > kSpinsBeforeYield) {
        std::this_thread::yield();
      }
    }
  }
  EndLock(EndLock const&) = delete;
  EndLock& operator=(EndLock const&) = delete;
  ~EndLock() {
    if (lock_ != nullptr) {
      lock_->store(false, std::memory_order_release);
    }
  }

 private:
  std::atomic<bool>* lock_;
};

}  // namespace

bool IndexRing::push(std::span<const std::uint32_t> indices) {
  const EndLock lock(in_lock_, ends_ != Ends::kOneEach);
  const std::uint32_t in = state_->in.load(std::memory_order_relaxed);
  if (in - seen_out_ > capacity() || indices.size() > capacity() - (in - seen_out_)) {
    seen_out_ = state_->out.load(std::memory_order_acquire);
  }
  const std::uint32_t inside = in - seen_out_;
  if (inside > capacity()) {
    return found_broken();
  }
  if (is_broken() || indices.size() > capacity() - inside) {
    return false;
  }
  const std::uint32_t at = in & (capacity() - 1);
  const std::size_t up_to_end = std::min<std::size_t>(indices.size(), capacity() - at);
  std::copy_n(indices.begin(), up_to_end, entries_.begin() + at);
  std::copy(indices.begin() + static_cast<std::ptrdiff_t>(up_to_end), indices.end(), entries_.begin());
  state_->in.store(in + static_cast<std::uint32_t>(indices.size()), std::memory_order_release);
  return true;
}

bool IndexRing::pop(std::span<std::uint32_t> indices) {
  const EndLock lock(out_lock_, ends_ != Ends::kOneEach);
  const std::uint32_t out = state_->out.load(std::memory_order_relaxed);
  if (indices.size() > seen_in_ - out || seen_in_ - out > capacity()) {
    seen_in_ = state_->in.load(std::memory_order_acquire);
  }
  const std::uint32_t inside = seen_in_ - out;
  if (inside > capacity()) {
    return found_broken();
  }
  if (is_broken() || indices.size() > inside) {
    return false;
  }
  if (!copy_out(out, indices)) {
    return found_broken();
  }
  state_->out.store(out + static_cast<std::uint32_t>(indices.size()), std::memory_order_release);
  return true;
}

/// False if one of them cannot be. Each is read once: it may change under our eyes.
bool IndexRing::copy_out(std::uint32_t position, std::span<std::uint32_t> indices) const {
  const std::uint32_t at = position & (capacity() - 1);
  const std::size_t up_to_end = std::min<std::size_t>(indices.size(), capacity() - at);
  const auto rest = std::copy_n(entries_.begin() + at, up_to_end, indices.begin());
  std::copy_n(entries_.begin(), indices.size() - up_to_end, rest);
  std::uint32_t wrong = 0;  // without a branch, so that compilers use vectors
  for (const std::uint32_t index : indices) {
    wrong |= index >= limit_ ? 1U : 0U;
  }
  return wrong == 0;
}

std::optional<std::uint32_t> IndexRing::known_next() const {
  const std::uint32_t out = state_->out.load(std::memory_order_relaxed);
  std::uint32_t index = 0;
  if (seen_in_ == out || !copy_out(out, std::span(&index, 1))) {
    return std::nullopt;
  }
  return index;
}

bool IndexRing::peek(std::span<std::uint32_t> indices) const {
  return indices.size() <= size() && copy_out(state_->out.load(std::memory_order_acquire), indices);
}

std::uint32_t IndexRing::size() const {
  // out first: a ring that is used meanwhile never seems to hold less than nothing
  const std::uint32_t out = state_->out.load(std::memory_order_acquire);
  return std::min(state_->in.load(std::memory_order_acquire) - out, capacity());
}

}  // namespace catena::memory
