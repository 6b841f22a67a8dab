// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/port.hpp"
#include "memory/index_ring.hpp"
#include "memory/packet_pool.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace catena::io {

/// Frames in slots of one pool that wait for another thread. One thread pushes, one pops, any looks at the rest.
class FrameQueue {
 public:
  /// Frames that are pushed or popped at once, at most.
  static constexpr std::size_t kBurst = 256;

  /// With room for `frames`, a power of two. `pool` must outlive it, and what is inside is the owner's to release.
  FrameQueue(memory::PacketPool& pool, std::uint32_t frames);
  FrameQueue(FrameQueue const&) = delete;
  FrameQueue& operator=(FrameQueue const&) = delete;

  std::size_t size() const { return ring_.size(); }
  /// For who pushes: at least as many.
  std::size_t room() const { return ring_.capacity() - ring_.size(); }
  /// Their slots are the queue's then. Precondition: frames.size() <= kBurst and <= room().
  void push(std::span<const SlotFrame> frames);
  /// How many of `frames` from the first on; they are the caller's.
  std::size_t pop(std::span<SlotFrame> frames);
  /// By who pops.
  void release_all();

 private:
  memory::PacketPool* pool_;
  memory::RingState state_{};
  std::vector<std::uint32_t> entries_;
  memory::IndexRing ring_;
};

/// Copies at most FrameQueue::kBurst frames from slots of one pool into slots of another, each to kSlotHeadroom:
/// `frames` become those that are there, as many from the first on as found a slot, whose number is returned.
std::size_t copy_frames(memory::PacketPool const& from, memory::PacketPool& to, std::span<SlotFrame> frames);

/// Gives back the slots of at most FrameQueue::kBurst frames, but of those that are kTooLong.
void release_frames(memory::PacketPool& pool, std::span<const SlotFrame> frames);

}  // namespace catena::io
