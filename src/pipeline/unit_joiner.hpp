// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/packet_pool.hpp"
#include "pipeline/unit_records.hpp"

#include <chrono>
#include <utility>

namespace catena::runtime {

/// Joins the units of rx while units are scarce. A stalled stage downstream lets rx take units of a few packets each;
/// without joining, these would use up all units long before the slots. Units wait for others only if half of all units
/// are in use, and not for long, as other branches of a graph may not stall: 1 ms, 2 ms with a quarter of the units
/// free, 4 ms with an eighth, and so on. One thread.
class UnitJoiner {
 public:
  /// `lines`: as for RxStage. Both outlive it.
  UnitJoiner(memory::PacketPool& pool, RecordLog* lines) : pool_(&pool), lines_(lines) {}

  /// No unit is held.
  bool empty() const { return held_ == nullptr; }
  /// Adds the packets of `unit` to the held unit and releases `unit`. False, without effect, if no unit is held or the
  /// packets do not fit.
  bool join(memory::Unit& unit);
  /// Holds a unit. Precondition: empty().
  void hold(memory::Unit* unit) {
    held_ = unit;
    since_ = {};
  }
  /// Whether the held unit should go downstream: it is full, units are not scarce, or it has waited long enough.
  bool is_due();
  /// The held unit, for its next owner; null if empty().
  memory::Unit* take() { return std::exchange(held_, nullptr); }

 private:
  memory::PacketPool* pool_;
  RecordLog* lines_;
  memory::Unit* held_ = nullptr;
  std::chrono::steady_clock::time_point since_;  ///< held_ was first found to wait; 0: it was not
};

}  // namespace catena::runtime
