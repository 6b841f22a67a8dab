// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/free_slots.hpp"
#include "packet/memory/index_ring.hpp"
#include "packet/memory/unit.hpp"

#include <catena/core/status.hpp>
#include <catena/packet/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::memory {

/// The size of an arena, which determines the position of everything in it.
struct ArenaShape {
  std::uint32_t slots = 0;         ///< a power of two from kMinSlots to kMaxSlots
  std::uint32_t unit_packets = 0;  ///< capacity of each unit: 1 to kMaxUnitPackets, at most half of the slots
  std::uint32_t queues = 0;        ///< of units, between stages: at most kMaxQueues
  std::uint32_t units = 0;         ///< at least 1, at most kMaxUnits

  friend bool operator==(ArenaShape const&, ArenaShape const&) = default;
};
inline constexpr std::uint32_t kMinSlots = 512;
inline constexpr std::uint32_t kMaxSlots = 1U << 20;
inline constexpr std::uint32_t kMaxQueues = 1024;
inline constexpr std::uint32_t kMaxUnits = 1U << 21;

/// Packet memory: slots, the metadata of their packets as one array per field, units, and rings of indices. Everything
/// is identified by numbers; the arena contains no address. Each slot is free or has one owner. Each unit's index is in
/// one ring or has one owner.
///
/// The slots have a file descriptor, so other processes and devices access the same frames. Everything else is private
/// to this process, since data that another process could change at any time cannot be trusted.
///
/// Thread rule: as for the members. Everything but create() may be called by any thread.
class Arena {
 public:
  /// Allocates and touches all memory at once, so the packet path causes no page faults. All slots and units are free
  /// and are handed out in order; the queues are empty.
  ///   InvalidArgument     another shape; the text lists the valid values
  ///   ResourceExhausted   out of memory; the text has the requested size
  static Result<std::unique_ptr<Arena>> create(ArenaShape const& shape);
  /// Likewise over the slots of another arena, with descriptor `fd`, which remains the caller's. No slot is free here.
  /// The owner of the other arena decides which slots this one may use, and when.
  ///   InvalidArgument     as create(); `fd` has no such slots, or could shrink under the reader
  ///   ResourceExhausted   as create()
  static Result<std::unique_ptr<Arena>> create_over(ArenaShape const& shape, int fd);
  /// Own units and queues over the slots and metadata of `first`, which must outlive it. Both share the free slots.
  /// InvalidArgument: as create(), or another number of slots; ResourceExhausted: as create().
  static Result<std::unique_ptr<Arena>> create_beside(Arena const& first, ArenaShape const& shape);
  ~Arena();
  Arena(Arena const&) = delete;
  Arena& operator=(Arena const&) = delete;

  ArenaShape const& shape() const { return shape_; }
  /// The descriptor of the slots, and of nothing else. Open as long as this arena, or the first one.
  int fd() const { return fd_; }

  /// First byte of a slot, which has kSlotBytes bytes. Slots follow one another without a gap.
  std::uint8_t* slot(std::uint32_t slot) const { return slots_ + std::size_t{slot} * packet::kSlotBytes; }
  std::span<std::byte> slot_bytes() const;
  packet::MetaColumns const& meta() const { return meta_; }
  packet::Batch batch(Unit const& unit) const { return {slots_, meta_, unit.used_slots()}; }

  std::uint32_t units() const { return shape_.units; }
  Unit& unit(std::uint32_t number) const {
    return *reinterpret_cast<Unit*>(first_unit_ + std::size_t{number} * unit_bytes_);
  }
  std::uint32_t number_of(Unit const& unit) const {
    return static_cast<std::uint32_t>(
        static_cast<std::size_t>(reinterpret_cast<std::byte const*>(&unit) - first_unit_) / unit_bytes_);
  }

  /// Any thread may acquire and release.
  FreeSlots& free_slots() const { return *free_slots_; }
  IndexRing& free_units() const { return *free_units_; }
  /// Queue of unit numbers, with space for every unit; one thread at each end.
  IndexRing& queue(std::uint32_t number) const { return *queues_[number]; }

 private:
  Arena() = default;
  Status map_slots();
  Status make_rest();

  ArenaShape shape_;
  Arena const* first_ = nullptr;  ///< the owner of the slots and metadata; null: this arena
  int fd_ = -1;
  std::uint8_t* slots_ = nullptr;
  std::byte* memory_ = nullptr;  ///< of all but the slots
  std::size_t bytes_ = 0;
  // parts of memory_
  packet::MetaColumns meta_{};
  std::byte* first_unit_ = nullptr;
  std::size_t unit_bytes_ = 0;
  std::unique_ptr<FreeSlots> own_free_slots_;
  FreeSlots* free_slots_ = nullptr;
  std::unique_ptr<IndexRing> free_units_;
  std::vector<std::unique_ptr<IndexRing>> queues_;
};

}  // namespace catena::memory
