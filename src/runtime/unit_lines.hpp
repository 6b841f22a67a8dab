// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/arena.hpp"
#include "nf/record.hpp"

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

/// What NFs said about the packets of a unit. Belongs to who has the unit.
struct UnitLines {
  std::vector<UnitRecord> records;
  std::vector<UnitAlert> alerts;
  std::vector<nf::Arrival> arrivals;  ///< of its packets, in order

  void clear() {
    records.clear();
    alerts.clear();
    arrivals.clear();
  }
};

/// The lines of every unit of an arena, for chains that write some. They stay in this process; the arena holds what
/// processes share.
class LineBook {
 public:
  /// `arena` must outlive this.
  explicit LineBook(memory::Arena const& arena) : arena_(&arena), lines_(arena.units()) {}
  UnitLines& of(memory::Unit const& unit) { return lines_[arena_->number_of(unit)]; }

 private:
  memory::Arena const* arena_;
  std::vector<UnitLines> lines_;
};

/// Whether packet `number` is among `packets`, which are in order.
bool has_packet(packet::Batch const& packets, std::uint64_t number);

/// A part of a unit that is divided.
struct PartLines {
  packet::Batch packets;  ///< in order
  UnitLines* lines;
  bool is_of_copies = false;  ///< what was said of a packet stays with it, and not with its copy
};
/// Moves what was said of a unit's packets to the parts that have them, and tells each part of the arrival of its
/// packets. At least one part, and not of copies the first.
void divide_lines(UnitLines& unit, std::span<const PartLines> parts);

}  // namespace catena::runtime
