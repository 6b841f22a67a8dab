// SPDX-License-Identifier: Apache-2.0
#include "io/frame_queue.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace catena::io {

FrameQueue::FrameQueue(memory::PacketPool& pool, std::uint32_t frames)
    : pool_(&pool), entries_(frames), ring_(state_, entries_, pool.slots(), memory::IndexRing::Ends::kOneEach) {}

void FrameQueue::push(std::span<const SlotFrame> frames) {
  std::array<std::uint32_t, kBurst> slots;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    slots[i] = frames[i].slot;
    pool_->meta().offset[frames[i].slot] = frames[i].offset;
    pool_->meta().length[frames[i].slot] = frames[i].length;
  }
  ring_.push(std::span(slots).first(frames.size()));
}

std::size_t FrameQueue::pop(std::span<SlotFrame> frames) {
  std::array<std::uint32_t, kBurst> slots;
  const std::size_t count = std::min({frames.size(), slots.size(), size()});
  if (count == 0 || !ring_.pop(std::span(slots).first(count))) {
    return 0;
  }
  for (std::size_t i = 0; i < count; ++i) {
    frames[i] = {slots[i], pool_->meta().offset[slots[i]], pool_->meta().length[slots[i]]};
  }
  return count;
}

void FrameQueue::release_all() {
  std::array<SlotFrame, kBurst> frames;
  for (std::size_t count = pop(frames); count != 0; count = pop(frames)) {
    release_frames(*pool_, std::span(frames).first(count));
  }
}

std::size_t copy_frames(memory::PacketPool const& from, memory::PacketPool& to, std::span<SlotFrame> frames) {
  std::array<std::uint32_t, FrameQueue::kBurst> slots;
  std::size_t count = frames.size();
  while (count != 0 && !to.acquire_slots(std::span(slots).first(count))) {
    count = std::min<std::size_t>(count - 1, to.free_slots());
  }
  for (std::size_t i = 0; i < count; ++i) {
    SlotFrame& frame = frames[i];
    std::memcpy(to.slot(slots[i]) + packet::kSlotHeadroom, from.slot(frame.slot) + frame.offset, frame.length);
    frame = {slots[i], packet::kSlotHeadroom, frame.length};
  }
  return count;
}

void release_frames(memory::PacketPool& pool, std::span<const SlotFrame> frames) {
  std::array<std::uint32_t, FrameQueue::kBurst> slots;
  std::size_t count = 0;
  for (SlotFrame const& frame : frames) {
    if (frame.slot != kTooLong) {
      slots[count++] = frame.slot;
    }
  }
  pool.release_slots(std::span(slots).first(count));
}

}  // namespace catena::io
