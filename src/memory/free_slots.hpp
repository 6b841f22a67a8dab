// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/slot.hpp>

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace catena::memory {

/// Which slots of an arena are in nobody's hands: a bit for each. They are handed out in order of their numbers by a
/// cursor that goes round, in whatever order they came back: behind branches that overtake one another units are runs
/// of consecutive slots, too, and what is released last is handed out a round later.
///
/// Thread rule: any thread.
class FreeSlots {
 public:
  /// `slots`: a multiple of 64.
  FreeSlots(std::uint32_t slots, bool are_free);
  FreeSlots(FreeSlots const&) = delete;
  FreeSlots& operator=(FreeSlots const&) = delete;

  /// As many as `slots` has room for or, where there are fewer, none: then nothing of `slots` has changed.
  bool acquire(std::span<std::uint32_t> slots);
  /// Each must be below the number of slots, and in the hands of who calls. One that is free already stays free once.
  void release(std::span<const std::uint32_t> slots);
  std::uint32_t count() const;

 private:
  bool reserve(std::uint32_t wanted);

  std::vector<std::atomic<std::uint64_t>> words_;
  /// Free slots less those that a thread in acquire() is about to take: who has taken its number from here finds as
  /// many bits.
  alignas(packet::kCacheLineBytes) std::atomic<std::uint32_t> unreserved_;
  /// Number of the slot to look at first.
  alignas(packet::kCacheLineBytes) std::atomic<std::uint32_t> cursor_{0};
};

}  // namespace catena::memory
