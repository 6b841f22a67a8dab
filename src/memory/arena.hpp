// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/free_slots.hpp"
#include "memory/index_ring.hpp"
#include "memory/unit.hpp"

#include <catena/core/status.hpp>
#include <catena/packet/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::memory {

/// How much an arena holds: all that is needed to know where everything in it is.
struct ArenaShape {
  std::uint32_t slots = 0;         ///< a power of two from kMinSlots to kMaxSlots
  std::uint32_t unit_packets = 0;  ///< room of each unit: 1 to kMaxUnitPackets, at most half of the slots
  std::uint32_t queues = 0;        ///< of units, between stages: at most kMaxQueues
  std::uint32_t units = 0;         ///< at least 1, at most kMaxUnits

  friend bool operator==(ArenaShape const&, ArenaShape const&) = default;
};
inline constexpr std::uint32_t kMinSlots = 512;
inline constexpr std::uint32_t kMaxSlots = 1U << 20;
inline constexpr std::uint32_t kMaxQueues = 1024;
inline constexpr std::uint32_t kMaxUnits = 1U << 21;

/// Packet memory: slots, the metadata of the packets in them as one array per field, units, and rings of indices.
/// Numbers stand for all of them and nothing inside is an address. Each slot is free or with one owner, and the index
/// of a unit in one ring or with one owner.
///
/// The slots are behind a file descriptor, so that other processes and devices reach the same frames. All else is this
/// process's own: what another one could change at any time, nobody could believe.
///
/// Thread rule: as for the parts. Everything but create() may be called by any thread.
class Arena {
 public:
  /// All memory is taken at once: no page of it is touched for the first time on the packet path. Every slot and every
  /// unit is free, and comes out in order; the queues are empty.
  ///   InvalidArgument     another shape; the text says what may be written
  ///   ResourceExhausted   the memory cannot be had; the text says how much was asked for
  static Result<std::unique_ptr<Arena>> create(ArenaShape const& shape);
  /// The same over the slots of another arena, which are behind `fd`; that stays the caller's. None of them is free
  /// here: who has the other arena says which of them this one may use when.
  ///   InvalidArgument     as create(); `fd` has no such slots, or could shrink under the reader
  ///   ResourceExhausted   as create()
  static Result<std::unique_ptr<Arena>> create_over(ArenaShape const& shape, int fd);
  /// Units and queues of its own over the slots of `first`, with their metadata: a slot is free in both or in none.
  /// `first` must outlive it. InvalidArgument: as create(), or another number of slots; ResourceExhausted: as create().
  static Result<std::unique_ptr<Arena>> create_beside(Arena const& first, ArenaShape const& shape);
  ~Arena();
  Arena(Arena const&) = delete;
  Arena& operator=(Arena const&) = delete;

  ArenaShape const& shape() const { return shape_; }
  /// Of the slots, which are all that is behind it. Open as long as this, or the first one.
  int fd() const { return fd_; }

  /// First byte of a slot; kSlotBytes long. Slots follow one another without a gap.
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

  /// Any thread may take and give.
  FreeSlots& free_slots() const { return *free_slots_; }
  IndexRing& free_units() const { return *free_units_; }
  /// Queue of unit numbers, with room for every unit; one thread at each end.
  IndexRing& queue(std::uint32_t number) const { return *queues_[number]; }

 private:
  Arena() = default;
  Status map_slots();
  Status make_rest();

  ArenaShape shape_;
  Arena const* first_ = nullptr;  ///< whose the slots are, with their metadata; null: its own
  int fd_ = -1;
  std::uint8_t* slots_ = nullptr;
  std::byte* memory_ = nullptr;  ///< of the rest
  std::size_t bytes_ = 0;
  // parts of it
  packet::MetaColumns meta_{};
  std::byte* first_unit_ = nullptr;
  std::size_t unit_bytes_ = 0;
  std::unique_ptr<FreeSlots> own_free_slots_;
  FreeSlots* free_slots_ = nullptr;
  std::unique_ptr<IndexRing> free_units_;
  std::vector<std::unique_ptr<IndexRing>> queues_;
};

}  // namespace catena::memory
