// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/slot.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

namespace catena::memory {

/// The state of a ring in shared memory, beside its entries. All zero: empty and open.
struct RingState {
  /// Entries pushed (`in`) and popped (`out`) so far, modulo 2^32.
  alignas(packet::kCacheLineBytes) std::atomic<std::uint32_t> in;
  alignas(packet::kCacheLineBytes) std::atomic<std::uint32_t> out;
  alignas(packet::kCacheLineBytes) std::atomic<std::uint32_t> is_closed;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "processes share it without a lock");

/// A FIFO queue of indices in memory that processes may share. Popped indices are below `limit`, whatever the process
/// at the other end has written. A ring corrupted by a process rejects all pushes and pops.
///
/// Thread rule: one thread at a time per end. If `Ends` allows it, any thread of one process, with all of them using
/// the same IndexRing.
class IndexRing {
 public:
  enum class Ends : std::uint8_t { kOneEach, kManyEach };

  /// `entries`: their number is a power of two, and they are in the same memory as `state`. Both must outlive this.
  IndexRing(RingState& state, std::span<std::uint32_t> entries, std::uint32_t limit, Ends ends)
      : state_(&state),
        entries_(entries),
        limit_(limit),
        ends_(ends),
        seen_out_(state.out.load(std::memory_order_acquire)),
        seen_in_(state.in.load(std::memory_order_acquire)) {}
  IndexRing(IndexRing const&) = delete;
  IndexRing& operator=(IndexRing const&) = delete;

  /// Pushes all of them; false, with no change, if there is no space for all.
  bool push(std::span<const std::uint32_t> indices);
  /// Fills all of `indices`. False if the ring has fewer; the content of `indices` is undefined then.
  bool pop(std::span<std::uint32_t> indices);
  /// The next index to be popped; nullopt if the popping thread does not know it yet. Costs nothing, as it does not
  /// read the other end's state.
  std::optional<std::uint32_t> known_next() const;
  /// As pop(), but leaves them inside; for observers. Unreliable during a concurrent pop().
  bool peek(std::span<std::uint32_t> indices) const;
  std::uint32_t size() const;
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(entries_.size()); }

  /// Nothing is pushed after this.
  void close() { state_->is_closed.store(1, std::memory_order_release); }
  bool is_closed() const { return state_->is_closed.load(std::memory_order_acquire) != 0; }
  /// Whether another process has written an invalid state or entry to the ring.
  bool is_broken() const { return is_broken_.load(std::memory_order_relaxed); }

 private:
  bool copy_out(std::uint32_t position, std::span<std::uint32_t> indices) const;
  bool found_broken() {
    is_broken_.store(true, std::memory_order_relaxed);
    return false;
  }

  RingState* state_;
  std::span<std::uint32_t> entries_;
  std::uint32_t limit_;
  Ends ends_;
  std::atomic<bool> is_broken_{false};
  // Each end in its own cache line: its lock, out of reach of other processes, and its last known position of the other
  // end. Reading the current position fetches a cache line from the other core, so an end reads it only if the known
  // one does not suffice.
  alignas(packet::kCacheLineBytes) std::atomic<bool> in_lock_{false};
  std::uint32_t seen_out_;
  alignas(packet::kCacheLineBytes) std::atomic<bool> out_lock_{false};
  std::uint32_t seen_in_;
};

}  // namespace catena::memory
