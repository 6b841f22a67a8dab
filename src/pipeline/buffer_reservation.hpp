// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/packet_pool.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace catena::runtime {

/// The empty units of a pool, and slots for copies of packets, for the stages of a chain that divide units. Before its
/// next unit, each stage needs an empty part for each destination, and a slot for each possible copy. It gets them only
/// if downstream stages can still get theirs. So the last stage can always continue, and its units and slots return for
/// the stage before it. Any thread.
class BufferReservation {
 public:
  explicit BufferReservation(memory::PacketPool& pool) : pool_(&pool) {}

  /// Adds a stage after or beside the ones added earlier. Returns its number. Before packets run.
  std::uint32_t add(std::uint32_t parts, std::uint32_t slots = 0);
  /// Maximum numbers of units and slots for stage `number` and later ones at once.
  std::uint32_t wanted_from(std::uint32_t number) const;
  std::uint32_t slots_wanted_from(std::uint32_t number) const;

  /// Fills the null parts of a stage. False if too few units are free.
  bool take(std::uint32_t number, std::span<memory::Unit*> parts);
  /// Refills `slots` with as many as the stage has used. False if too few are free.
  bool take_slots(std::uint32_t number, std::vector<std::uint32_t>& slots);
  /// The stage is about to pass on `parts` of its parts, and packets in `slots` of its slots. Call before it does: they
  /// return.
  void used(std::uint32_t number, std::uint32_t parts, std::uint32_t slots = 0);
  /// A unit for the source, which is upstream of all stages and takes slots for a full unit; null if not available now.
  memory::Unit* take_one();

 private:
  memory::PacketPool* pool_;
  std::vector<std::uint32_t> parts_;  ///< of each stage
  std::vector<std::uint32_t> slots_;
  std::mutex mutex_;
  // guarded by the mutex
  std::vector<std::uint32_t> missing_;        ///< parts not yet taken by each
  std::vector<std::uint32_t> missing_slots_;  ///< slots
};

/// Whether it is worth waiting for packets. ResourceExhausted if devices that never answered have left less of the pool
/// than `units`, or than a full unit and `slots` more.
Status pending_slots(memory::PacketPool const& pool, std::uint32_t units, std::uint32_t slots = 0);

}  // namespace catena::runtime
