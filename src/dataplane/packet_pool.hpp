// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/unit.hpp"

#include <catena/core/status.hpp>
#include <catena/packet/batch.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct rte_mempool;

namespace catena::dataplane {

/// The packet pool: one memory of equally spaced slots, each the data buffer of one mbuf, and the metadata of the
/// packets in them, one array per field. Slots are handed out in order, so a unit is normally a run of consecutive
/// slots. Units come from here too.
///
/// Slots that are free are in no cache but in one queue: what is released last is handed out last.
///
/// Thread rule: acquire_unit(), acquire_slots(), adopt() and set_arrived() by one thread at a time; acquire_mbufs() and
/// release_* by any thread.
class PacketPool {
 public:
  static constexpr std::uint32_t kMinSlots = 512;
  static constexpr std::uint32_t kMaxSlots = 1U << 20;
  /// `slots`: a power of two from kMinSlots to kMaxSlots. `unit_packets`: room of each unit, 1 to kMaxUnitPackets and
  /// at most half of the slots. Takes all memory at once: no slot is touched for the first time on the packet path.
  /// Errors:
  ///   InvalidArgument     another number of slots, or of packets in a unit
  ///   Unavailable         the EAL does not start
  ///   ResourceExhausted   memory cannot be had; the text says how much was asked for
  static Result<std::unique_ptr<PacketPool>> create(std::uint32_t slots,
                                                    std::uint32_t unit_packets = kDefaultUnitPackets);
  ~PacketPool();
  PacketPool(PacketPool const&) = delete;
  PacketPool& operator=(PacketPool const&) = delete;

  /// An empty unit, or null when all are in flight.
  Unit* acquire_unit();
  /// Gives `unit` slots for exactly `count` packets after the ones it has: their mbufs and
  /// slot numbers are set, `count` is not. False, and nothing changed, if so many are not free.
  /// Precondition: unit.count + count <= unit_packets().
  bool acquire_slots(Unit& unit, std::uint32_t count);
  /// Enters mbufs that a driver took from this pool (see mempool()) as the unit's packets [unit.count, +mbufs.size()),
  /// as set_arrived() does, but where the driver put the frames; indices from `first_index`, one arrival time for all.
  /// Increases `count`.
  /// Precondition: there is room, and each mbuf has one segment of at most kMaxFrameBytes and no other holder.
  void adopt(Unit& unit, std::span<rte_mbuf* const> mbufs, std::uint64_t first_index, std::uint64_t arrival_ns);
  /// Takes as many mbufs as `mbufs` has room for, to hand them to a driver; any thread. False, and none taken, if so
  /// many are not free.
  bool acquire_mbufs(std::span<rte_mbuf*> mbufs);
  /// Gives back slots [first, first + count) of the unit.
  void release_slots(Unit& unit, std::uint32_t first, std::uint32_t count);
  /// Gives back the unit itself; its slots must have been released or passed to a driver.
  void release_unit(Unit* unit);
  /// Instead of release_*: a device may still write to the unit's slots, so neither they nor the unit come back.
  void quarantine(Unit const& unit);

  /// First byte of a slot; kSlotBytes long.
  std::uint8_t* slot(std::uint32_t slot) { return memory_ + std::size_t{slot} * packet::kSlotBytes; }
  packet::MetaColumns const& meta() const { return meta_; }
  packet::Batch batch(Unit const& unit) const { return {memory_, meta_, unit.used_slots()}; }
  /// Enters a frame that is at kSlotHeadroom of `slot`: offset, length, layers; verdict pass, port 0, not
  /// rewritten, ingress 0, no MTU.
  void set_arrived(std::uint32_t slot, std::uint32_t length, std::uint64_t index, std::uint64_t arrival_ns);
  /// The same for a frame that was parsed before: `layers` is what parse() says of it.
  void set_arrived(std::uint32_t slot, std::uint32_t length, packet::Layers const& layers, std::uint64_t index,
                   std::uint64_t arrival_ns) {
    enter(slot, packet::kSlotHeadroom, length, layers, index, arrival_ns);
  }

  std::uint32_t slots() const { return slots_; }
  /// Packets that a unit has room for.
  std::uint32_t unit_packets() const { return unit_packets_; }
  rte_mempool* mempool() { return mempool_; }
  /// Slots that are not in use now; for tests that look for leaks.
  std::uint32_t free_slots() const;
  std::uint32_t free_units() const;
  /// Slots that quarantine() has taken out of use; any thread.
  std::uint32_t quarantined_slots() const { return quarantined_slots_.load(std::memory_order_relaxed); }
  /// Whether quarantine() has left too little for a unit of full size ever to come again; any thread.
  bool exhausted() const;

 private:
  struct Columns;
  struct FreeUnits;

  PacketPool() = default;
  Status map_memory();
  Status create_mempool();
  Status number_mbufs();
  Status create_columns_and_units();
  std::uint32_t slot_of(rte_mbuf const* mbuf) const;
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
  }

  std::uint32_t slots_ = 0;
  std::uint32_t unit_packets_ = 0;
  int memory_fd_ = -1;
  std::uint8_t* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  bool registered_ = false;
  rte_mempool* mempool_ = nullptr;
  /// The slot of each mbuf, by the cache line that it begins with: the mbufs themselves are in no cache when they are
  /// handed out.
  std::vector<std::uint32_t> slot_of_mbuf_;
  std::uintptr_t first_mbuf_ = 0;
  std::unique_ptr<Columns> columns_;
  packet::MetaColumns meta_{};
  std::vector<std::unique_ptr<Unit>> units_;
  std::unique_ptr<FreeUnits> free_units_;
  std::atomic<std::uint32_t> quarantined_slots_{0};
  std::atomic<std::uint32_t> quarantined_units_{0};
};

}  // namespace catena::dataplane
