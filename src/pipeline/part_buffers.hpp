// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/packet_pool.hpp"
#include "pipeline/buffer_reservation.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace catena::runtime {

/// Empty units and slots kept for the division of the next unit, so that a division begun can always be completed: a
/// part per branch, a part per mirrored branch with its copies, and a slot for each copy of a full unit. One thread.
class PartBuffers {
 public:
  /// Parts 0 to `branches` - 1 are of the branches, the next `mirrored` ones have copies. `pool` and `reserve` outlive
  /// this. Create it after all upstream stages.
  PartBuffers(memory::PacketPool& pool, BufferReservation& reserve, std::size_t branches, std::size_t mirrored);
  PartBuffers(PartBuffers const&) = delete;
  PartBuffers& operator=(PartBuffers const&) = delete;

  /// Whether all buffers for the next unit are here; takes the missing ones. If false, units in flight will return
  /// them.
  bool is_ready();
  /// ResourceExhausted if the missing buffers never return, as a device that never answered keeps them.
  Status pending() const;
  /// Part number `number` of `unit`, in which it gets its next packet.
  memory::Unit& part(std::size_t number, memory::Unit const& unit) {
    memory::Unit& part = *parts_[number];
    if (part.count == 0) {
      begin(part, number, unit);
    }
    return part;
  }
  /// A slot for a copy.
  std::uint32_t take_slot() { return spare_slots_[spare_slots_.size() - ++used_slots_]; }
  /// All parts, also empty ones.
  std::vector<memory::Unit*> const& parts() const { return parts_; }
  bool has_copies(std::size_t number) const { return number >= branches_; }
  /// Reports the used buffers to the reservation: after the last packet, before any part or slot may return.
  void report_used();
  /// Passes the part to the caller; null if it is empty.
  memory::Unit* take(std::size_t number);
  /// Returns all buffers.
  void close();

 private:
  void begin(memory::Unit& part, std::size_t number, memory::Unit const& unit) const;

  memory::PacketPool* pool_;
  BufferReservation* reserve_;
  std::size_t branches_;
  std::uint32_t number_;                    ///< in the reserve
  std::vector<memory::Unit*> parts_;        ///< null: to be taken
  std::vector<std::uint32_t> spare_slots_;  ///< for copies
  std::uint32_t used_slots_ = 0;
};

}  // namespace catena::runtime
