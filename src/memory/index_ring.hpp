// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/slot.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

namespace catena::memory {

/// What a ring keeps in shared memory beside its entries. All zero: empty and open.
struct RingState {
  /// Entries that went through this end so far, modulo 2^32.
  alignas(packet::kCacheLineBytes) std::atomic<std::uint32_t> in;
  alignas(packet::kCacheLineBytes) std::atomic<std::uint32_t> out;
  alignas(packet::kCacheLineBytes) std::atomic<std::uint32_t> is_closed;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "what processes share must need no lock of one of them");

/// A queue of indices in memory that processes may share: first in, first out. What comes out is below `limit`,
/// whatever a process at the other end has written; a ring that was broken by one gives and takes nothing any more.
///
/// Thread rule: each end is one thread's at a time, or, where `Ends` says so, any thread's of one process, all of them
/// through the same IndexRing.
class IndexRing {
 public:
  enum class Ends : std::uint8_t { kOneEach, kManyEach };

  /// `entries`: a power of two of them, in the same memory as `state`; both outlive this.
  IndexRing(RingState& state, std::span<std::uint32_t> entries, std::uint32_t limit, Ends ends)
      : state_(&state),
        entries_(entries),
        limit_(limit),
        ends_(ends),
        seen_out_(state.out.load(std::memory_order_acquire)),
        seen_in_(state.in.load(std::memory_order_acquire)) {}
  IndexRing(IndexRing const&) = delete;
  IndexRing& operator=(IndexRing const&) = delete;

  /// All of them or, where there is no room for all, none.
  bool push(std::span<const std::uint32_t> indices);
  /// As many as `indices` has room for or, where there are fewer, none. What it holds after a failure is undefined.
  bool pop(std::span<std::uint32_t> indices);
  /// What comes out next, as far as the one thread that pops knows without asking the other end: it costs nothing.
  std::optional<std::uint32_t> known_next() const;
  /// As pop(), but they stay inside: for who looks on. Under way at the same time, pop() makes it a guess.
  bool peek(std::span<std::uint32_t> indices) const;
  std::uint32_t size() const;
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(entries_.size()); }

  /// Nothing comes after what is inside.
  void close() { state_->is_closed.store(1, std::memory_order_release); }
  bool is_closed() const { return state_->is_closed.load(std::memory_order_acquire) != 0; }
  /// Somebody else has written to the ring what a ring never has.
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
  // Each end in a line of its own: its lock, where no other process can hold it, and how far it has seen the other end
  // get. To look there takes a line from the other core, so an end looks only where what it knows does not do.
  alignas(packet::kCacheLineBytes) std::atomic<bool> in_lock_{false};
  std::uint32_t seen_out_;
  alignas(packet::kCacheLineBytes) std::atomic<bool> out_lock_{false};
  std::uint32_t seen_in_;
};

}  // namespace catena::memory
