// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/arena.hpp"

#include <catena/core/status.hpp>
#include <catena/packet/batch.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace catena::memory {

/// Hands out the slots and units of an arena, and takes them back. Slots are handed out in order of their
/// numbers, round after round, so a unit is normally a run of consecutive slots, in whatever order they came back.
///
/// Thread rule: any thread, about a unit or a slot its owner.
class PacketPool {
 public:
  /// Queues of units that a pool has unless more are asked for.
  static constexpr std::uint32_t kDefaultQueues = 32;

  /// Has units for full ones even if every second is only half full and some are on the way back; `parts`: of each
  /// there may be so many parts at a time, each with packets of its own. See Arena::create(), also for the errors.
  static Result<std::unique_ptr<PacketPool>> create(std::uint32_t slots,
                                                    std::uint32_t unit_packets = kDefaultUnitPackets,
                                                    std::uint32_t queues = kDefaultQueues, std::uint32_t parts = 1);
  /// The same over the slots of another pool of so many, which are behind `fd`: see Arena::create_over().
  static Result<std::unique_ptr<PacketPool>> create_over(int fd, std::uint32_t slots,
                                                         std::uint32_t unit_packets = kDefaultUnitPackets,
                                                         std::uint32_t queues = kDefaultQueues);
  /// Units and queues of its own over the slots of `first`, for packets of the same ends: see Arena::create_beside().
  static Result<std::unique_ptr<PacketPool>> create_beside(std::shared_ptr<PacketPool> first,
                                                           std::uint32_t unit_packets, std::uint32_t queues,
                                                           std::uint32_t parts = 1);
  PacketPool(PacketPool const&) = delete;
  PacketPool& operator=(PacketPool const&) = delete;

  Arena& arena() const { return *arena_; }

  /// An empty unit, or null when all are in flight.
  Unit* acquire_unit();
  /// As many as `units` has room for; false, and none taken, if so many are not free.
  bool acquire_units(std::span<Unit*> units);
  /// Gives `unit` slots for exactly `count` packets after the ones it has; `unit.count` stays. False, and nothing
  /// changed, if so many are not free. Precondition: unit.count + count <= unit_packets().
  bool acquire_slots(Unit& unit, std::uint32_t count);
  /// As many as `slots` has room for; false, and none taken, if so many are not free.
  bool acquire_slots(std::span<std::uint32_t> slots) { return arena_->free_slots().acquire(slots); }
  /// Gives back slots [first, first + count) of the unit.
  void release_slots(Unit const& unit, std::uint32_t first, std::uint32_t count) {
    release_slots(std::span(unit.slots() + first, count));
  }
  void release_slots(std::span<const std::uint32_t> slots) { arena_->free_slots().release(slots); }
  /// Gives back the unit itself; its slots must have been released or passed to a port.
  void release_unit(Unit* unit);
  /// Instead of release_*: a device may still write to the unit's slots, so neither they nor the unit come back.
  void quarantine(Unit const& unit);

  /// First byte of a slot; kSlotBytes long.
  std::uint8_t* slot(std::uint32_t slot) const { return arena_->slot(slot); }
  packet::MetaColumns const& meta() const { return meta_; }
  packet::Batch batch(Unit const& unit) const { return {arena_->slot(0), meta_, unit.used_slots()}; }
  /// Enters a frame that is at kSlotHeadroom of `slot`: offset, length, layers; verdict pass, port 0, not
  /// rewritten, ingress 0, no MTU, no output.
  void set_arrived(std::uint32_t slot, std::uint32_t length, std::uint64_t index, std::uint64_t arrival_ns) {
    set_arrived_at(packet::kSlotHeadroom, slot, length, index, arrival_ns);
  }
  /// The same for a frame elsewhere in its slot. Precondition: offset + length <= kSlotBytes.
  void set_arrived_at(std::uint32_t offset, std::uint32_t slot, std::uint32_t length, std::uint64_t index,
                      std::uint64_t arrival_ns) {
    set_arrived_at(offset, slot, length, packet::parse(this->slot(slot) + offset, length), index, arrival_ns);
  }
  /// The same for a frame that was parsed before: `layers` is what parse() says of it.
  void set_arrived_at(std::uint32_t offset, std::uint32_t slot, std::uint32_t length, packet::Layers const& layers,
                      std::uint64_t index, std::uint64_t arrival_ns) {
    enter(slot, offset, length, layers, index, arrival_ns);
  }
  void set_arrived(std::uint32_t slot, std::uint32_t length, packet::Layers const& layers, std::uint64_t index,
                   std::uint64_t arrival_ns) {
    set_arrived_at(packet::kSlotHeadroom, slot, length, layers, index, arrival_ns);
  }

  std::uint32_t slots() const { return arena_->shape().slots; }
  /// Packets that a unit has room for.
  std::uint32_t unit_packets() const { return arena_->shape().unit_packets; }
  /// Slots that are not in use now.
  std::uint32_t free_slots() const { return arena_->free_slots().count(); }
  std::uint32_t free_units() const { return arena_->free_units().size(); }
  /// Slots that quarantine() has taken out of use.
  std::uint32_t quarantined_slots() const {
    std::atomic<std::uint32_t> const& slots = first_ == nullptr ? quarantined_slots_ : first_->quarantined_slots_;
    return slots.load(std::memory_order_relaxed);
  }
  /// Whether quarantine() has left too little for a unit of full size ever to come again, where that takes `units`
  /// units, and `slots` slots beside its own: as many as must be there at one time.
  bool exhausted(std::uint32_t units = 1, std::uint32_t slots = 0) const;

 private:
  explicit PacketPool(std::unique_ptr<Arena> arena, std::shared_ptr<PacketPool> first = nullptr)
      : first_(std::move(first)), arena_(std::move(arena)), meta_(arena_->meta()) {}
  void enter(std::uint32_t slot, std::uint32_t offset, std::uint32_t length, packet::Layers const& layers,
             std::uint64_t index, std::uint64_t arrival_ns) {
    meta_.offset[slot] = static_cast<std::uint16_t>(offset);
    meta_.length[slot] = static_cast<std::uint16_t>(length);
    meta_.layers[slot] = layers;
    meta_.verdict[slot] = static_cast<std::uint8_t>(packet::Verdict::kPass);
    meta_.port[slot] = 0;
    meta_.index[slot] = index;
    meta_.arrival_ns[slot] = arrival_ns;
    meta_.rewritten[slot] = 0;
    meta_.ingress[slot] = 0;
    meta_.mtu[slot] = 0;
    meta_.output[slot] = 0;
  }

  std::shared_ptr<PacketPool> first_;  ///< whose the slots are, and no other's; null: its own
  std::unique_ptr<Arena> arena_;
  packet::MetaColumns meta_;
  std::atomic<std::uint32_t> quarantined_slots_{0};
  std::atomic<std::uint32_t> quarantined_units_{0};
};

}  // namespace catena::memory
