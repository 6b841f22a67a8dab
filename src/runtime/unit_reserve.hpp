// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/packet_pool.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace catena::runtime {

/// The empty units of a pool, and slots for copies of packets, for the stages of a chain that divide units. Each needs
/// an empty part for each place where packets may go before it takes its next unit, and a slot for each copy that it
/// may have to make. It gets them only if those behind it still find theirs: so the last one can always go on, and the
/// units and slots of what it passed come back for the one in front of it. Any thread.
class UnitReserve {
 public:
  explicit UnitReserve(memory::PacketPool& pool) : pool_(&pool) {}

  /// A stage behind those that were added, or beside them. Its number. Before packets run.
  std::uint32_t add(std::uint32_t parts, std::uint32_t slots = 0);
  /// All units, and slots, that stage `number` and those behind it may want at once.
  std::uint32_t wanted_from(std::uint32_t number) const;
  std::uint32_t slots_wanted_from(std::uint32_t number) const;

  /// Fills what is null in the parts of a stage. False: there are too few units now.
  bool take(std::uint32_t number, std::span<memory::Unit*> parts);
  /// Adds the slots that a stage has used to `slots`. False: there are too few now.
  bool take_slots(std::uint32_t number, std::vector<std::uint32_t>& slots);
  /// The stage is about to hand on so many of its parts, and packets in so many of its slots. To be said in front of
  /// that: they come back.
  void used(std::uint32_t number, std::uint32_t parts, std::uint32_t slots = 0);
  /// One for the source, which is in front of all stages, and takes slots for a full one; null: not now.
  memory::Unit* take_one();

 private:
  memory::PacketPool* pool_;
  std::vector<std::uint32_t> parts_;  ///< of each stage
  std::vector<std::uint32_t> slots_;
  std::mutex mutex_;
  // of the mutex
  std::vector<std::uint32_t> missing_;        ///< parts that each has not taken
  std::vector<std::uint32_t> missing_slots_;  ///< slots
};

/// Whether packets are worth waiting for. ResourceExhausted where what devices that never answered have left of the
/// pool is less than `units`, or than a full one and `slots` more.
Status still_coming(memory::PacketPool const& pool, std::uint32_t units, std::uint32_t slots = 0);

}  // namespace catena::runtime
