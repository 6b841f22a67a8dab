// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/record.hpp"
#include "packet/memory/arena.hpp"

#include <catena/packet/batch.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace catena::runtime {

/// A line of `--record` and the NF (position in the chain) that wrote it.
struct UnitRecord {
  std::uint32_t nf;
  nf::RecordLine line;
};

/// An alert for `--eve` and the NF (position in the chain) that raised it.
struct UnitAlert {
  std::uint32_t nf;
  nf::AlertLine line;
};

/// The NFs' lines about the packets of a unit. Belongs to the owner of the unit.
struct UnitRecords {
  std::vector<UnitRecord> records;
  std::vector<UnitAlert> alerts;
  std::vector<nf::Arrival> arrivals;  ///< of its packets, in order

  void clear() {
    records.clear();
    alerts.clear();
    arrivals.clear();
  }
};

/// The lines of every unit of an arena, for chains with such outputs. They stay in this process; the arena has the data
/// shared by processes.
class RecordLog {
 public:
  /// `arena` must outlive this.
  explicit RecordLog(memory::Arena const& arena) : arena_(&arena), lines_(arena.units()) {}
  UnitRecords& of(memory::Unit const& unit) { return lines_[arena_->number_of(unit)]; }

 private:
  memory::Arena const* arena_;
  std::vector<UnitRecords> lines_;
};

/// Whether packet `number` is among `packets`, which are in order.
bool has_packet(packet::Batch const& packets, std::uint64_t number);

/// A part of a divided unit.
struct PartLines {
  packet::Batch packets;  ///< in order
  UnitRecords* lines;
  bool is_of_copies = false;  ///< lines about a packet stay with it, not with its copy
};
/// Moves a unit's lines to the parts with their packets, and gives each part the arrivals of its packets. At least one
/// part; the first is not of copies.
void divide_lines(UnitRecords& unit, std::span<const PartLines> parts);

}  // namespace catena::runtime
