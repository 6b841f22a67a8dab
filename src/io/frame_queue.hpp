// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/port.hpp"
#include "packet/memory/index_ring.hpp"
#include "packet/memory/packet_pool.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace catena::io {

/// Frames in slots of one pool, waiting for another thread. One thread pushes, one pops, any thread reads the size.
class FrameQueue {
 public:
  /// Maximum number of frames per push or pop.
  static constexpr std::size_t kBurst = 256;

  /// With capacity `frames`, a power of two. `pool` must outlive it. The owner must release the frames left in it.
  FrameQueue(memory::PacketPool& pool, std::uint32_t frames);
  FrameQueue(FrameQueue const&) = delete;
  FrameQueue& operator=(FrameQueue const&) = delete;

  std::size_t size() const { return ring_.size(); }
  /// Free space, for the pushing thread; may increase meanwhile.
  std::size_t room() const { return ring_.capacity() - ring_.size(); }
  /// Takes ownership of their slots. Precondition: frames.size() <= kBurst and <= room().
  void push(std::span<const SlotFrame> frames);
  /// Fills `frames` from the front and returns the number. The caller owns their slots.
  std::size_t pop(std::span<SlotFrame> frames);
  /// Called by the popping thread.
  void release_all();

 private:
  memory::PacketPool* pool_;
  memory::RingState state_{};
  std::vector<std::uint32_t> entries_;
  memory::IndexRing ring_;
};

/// Copies at most FrameQueue::kBurst frames from slots of one pool to kSlotHeadroom of slots of another. Returns the
/// number of copied frames, from the first on; it is smaller if slots run out. `frames` become the copies.
std::size_t copy_frames(memory::PacketPool const& from, memory::PacketPool& to, std::span<SlotFrame> frames);

/// Releases the slots of at most FrameQueue::kBurst frames, except kTooLong ones.
void release_frames(memory::PacketPool& pool, std::span<const SlotFrame> frames);

}  // namespace catena::io
