// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/arena.hpp"

#include <catena/core/status.hpp>
#include <catena/packet/batch.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::memory {

/// Allocates the slots and units of an arena. Slots are handed out in order of their numbers, round after round, so a
/// unit is normally a run of consecutive slots, independent of the order of release.
///
/// Thread rule: any thread; calls about a unit or slot only by its owner.
class PacketPool {
 public:
  /// Default number of unit queues.
  static constexpr std::uint32_t kDefaultQueues = 32;

  /// Has enough units for all slots even if units are only half full, and spare ones for units on their way back.
  /// `parts`: a unit may be divided into this many parts at a time, each with packets of its own. See Arena::create(),
  /// also for the errors.
  static Result<std::unique_ptr<PacketPool>> create(std::uint32_t slots,
                                                    std::uint32_t unit_packets = kDefaultUnitPackets,
                                                    std::uint32_t queues = kDefaultQueues, std::uint32_t parts = 1);
  /// Likewise over the slots of another pool with the same number of slots and descriptor `fd`: see
  /// Arena::create_over().
  static Result<std::unique_ptr<PacketPool>> create_over(int fd, std::uint32_t slots,
                                                         std::uint32_t unit_packets = kDefaultUnitPackets,
                                                         std::uint32_t queues = kDefaultQueues);
  /// Own units and queues over the slots of `first`, for packets of the same source and sink: see
  /// Arena::create_beside().
  static Result<std::unique_ptr<PacketPool>> create_beside(std::shared_ptr<PacketPool> first,
                                                           std::uint32_t unit_packets, std::uint32_t queues,
                                                           std::uint32_t parts = 1);
  PacketPool(PacketPool const&) = delete;
  PacketPool& operator=(PacketPool const&) = delete;

  Arena& arena() const { return *arena_; }

  /// An empty unit, or null if all are in flight.
  Unit* acquire_unit();
  /// Fills all of `units`. False, and takes no unit, if too few are free.
  bool acquire_units(std::span<Unit*> units);
  /// Adds slots for exactly `count` packets to `unit`, after its current ones; `unit.count` stays unchanged. False,
  /// with no change, if too few are free. Precondition: unit.count + count <= unit_packets().
  bool acquire_slots(Unit& unit, std::uint32_t count);
  /// Fills all of `slots`. False, and takes no slot, if too few are free.
  bool acquire_slots(std::span<std::uint32_t> slots) { return arena_->free_slots().acquire(slots); }
  /// Releases slots [first, first + count) of the unit.
  void release_slots(Unit const& unit, std::uint32_t first, std::uint32_t count) {
    release_slots(std::span(unit.slots() + first, count));
  }
  void release_slots(std::span<const std::uint32_t> slots) { arena_->free_slots().release(slots); }
  /// Releases the unit itself. Its slots must have been released or passed to a port.
  void release_unit(Unit* unit);
  /// Replaces release_*() if a device may still write to the unit's slots. Neither the slots nor the unit are used
  /// again.
  void quarantine(Unit const& unit);

  /// First byte of a slot, which has kSlotBytes bytes.
  std::uint8_t* slot(std::uint32_t slot) const { return arena_->slot(slot); }
  packet::MetaColumns const& meta() const { return meta_; }
  packet::Batch batch(Unit const& unit) const { return {arena_->slot(0), meta_, unit.used_slots()}; }
  /// Initializes the metadata of a frame at kSlotHeadroom of `slot`: offset, length, layers; verdict pass, port 0, not
  /// rewritten, ingress 0, no MTU, no output.
  void set_arrived(std::uint32_t slot, std::uint32_t length, std::uint64_t index, std::uint64_t arrival_ns) {
    set_arrived_at(packet::kSlotHeadroom, slot, length, index, arrival_ns);
  }
  /// Likewise for a frame elsewhere in its slot. Precondition: offset + length <= kSlotBytes.
  void set_arrived_at(std::uint32_t offset, std::uint32_t slot, std::uint32_t length, std::uint64_t index,
                      std::uint64_t arrival_ns) {
    set_arrived_at(offset, slot, length, packet::parse(this->slot(slot) + offset, length), index, arrival_ns);
  }
  /// Likewise for a frame parsed before: `layers` is the result of parse().
  void set_arrived_at(std::uint32_t offset, std::uint32_t slot, std::uint32_t length, packet::Layers const& layers,
                      std::uint64_t index, std::uint64_t arrival_ns) {
    enter(slot, offset, length, layers, index, arrival_ns);
  }
  void set_arrived(std::uint32_t slot, std::uint32_t length, packet::Layers const& layers, std::uint64_t index,
                   std::uint64_t arrival_ns) {
    set_arrived_at(packet::kSlotHeadroom, slot, length, layers, index, arrival_ns);
  }

  /// Bytes of the frame in `slot` that its capture lacks. Only captures set it, and before the packet leaves rx; 0 for
  /// all other packets. In the process of an NF always 0.
  std::uint32_t missing(std::uint32_t slot) const {
    std::vector<std::uint32_t> const& missing = first_ == nullptr ? missing_ : first_->missing_;
    return missing.empty() ? 0 : missing[slot];
  }
  /// Precondition: the pool was made by create(), or beside such a pool.
  void set_missing(std::uint32_t slot, std::uint32_t bytes) {
    (first_ == nullptr ? missing_ : first_->missing_)[slot] = bytes;
  }

  std::uint32_t slots() const { return arena_->shape().slots; }
  /// Capacity of a unit, in packets.
  std::uint32_t unit_packets() const { return arena_->shape().unit_packets; }
  /// Slots not in use.
  std::uint32_t free_slots() const { return arena_->free_slots().count(); }
  std::uint32_t free_units() const { return arena_->free_units().size(); }
  /// Slots taken out of use by quarantine().
  std::uint32_t quarantined_slots() const {
    std::atomic<std::uint32_t> const& slots = first_ == nullptr ? quarantined_slots_ : first_->quarantined_slots_;
    return slots.load(std::memory_order_relaxed);
  }
  /// Whether quarantine() has left too little for another full unit, if it needs `units` units and `slots` slots beside
  /// its own at the same time.
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

  std::shared_ptr<PacketPool> first_;  ///< the owner of the slots, itself without one; null: this pool
  std::unique_ptr<Arena> arena_;
  packet::MetaColumns meta_;
  std::vector<std::uint32_t> missing_;  ///< by slot
  std::atomic<std::uint32_t> quarantined_slots_{0};
  std::atomic<std::uint32_t> quarantined_units_{0};
};

}  // namespace catena::memory
