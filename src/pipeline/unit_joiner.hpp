// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/packet_pool.hpp"
#include "pipeline/unit_records.hpp"

#include <utility>

namespace catena::runtime {

/// Joins the units of rx while units are scarce. A stalled stage downstream lets rx take units of a few packets each;
/// without joining, these would use up all units long before the slots. Units wait for others only if half of all units
/// are in use: their packets would wait downstream anyway. One thread.
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
  void hold(memory::Unit* unit) { held_ = unit; }
  /// Whether the held unit should go downstream: it is full, or units are not scarce.
  bool is_due() const;
  /// The held unit, for its next owner; null if empty().
  memory::Unit* take() { return std::exchange(held_, nullptr); }

 private:
  memory::PacketPool* pool_;
  RecordLog* lines_;
  memory::Unit* held_ = nullptr;
};

}  // namespace catena::runtime
