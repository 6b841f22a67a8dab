// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/slot.hpp>

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace catena::memory {

/// The free slots of an arena, one bit per slot. A circular cursor hands them out in order of their numbers,
/// independent of the order of release. So units are runs of consecutive slots even after branches that overtake one
/// another, and the slots released last are handed out one round later.
///
/// Thread rule: any thread.
class FreeSlots {
 public:
  /// `slots`: a multiple of 64.
  FreeSlots(std::uint32_t slots, bool are_free);
  FreeSlots(FreeSlots const&) = delete;
  FreeSlots& operator=(FreeSlots const&) = delete;

  /// Fills all of `slots`. False, with `slots` unchanged, if too few are free.
  bool acquire(std::span<std::uint32_t> slots);
  /// Each must be below the number of slots and owned by the caller. Releasing a free slot again has no effect.
  void release(std::span<const std::uint32_t> slots);
  std::uint32_t count() const;

 private:
  bool reserve(std::uint32_t wanted);

  std::vector<std::atomic<std::uint64_t>> words_;
  /// Free slots minus the reservations of threads in acquire(). A thread that has subtracted its number here is certain
  /// to find as many bits.
  alignas(packet::kCacheLineBytes) std::atomic<std::uint32_t> unreserved_;
  /// Number of the slot to try first.
  alignas(packet::kCacheLineBytes) std::atomic<std::uint32_t> cursor_{0};
};

}  // namespace catena::memory
