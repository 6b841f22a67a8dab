// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/copy/body_copy.hpp"

namespace catena::copy {

/// The packets of a launch: its units, the decided and the passed-over packets of each unit, and the slots used by the
/// launch only. One row per packet: first the decided packets in the order of add(), then the passed-over packets.
/// Belongs to one thread at a time.
class Rows {
 public:
  /// Needs of a launch besides the decided packets.
  struct Needs {
    bool passed = false;  ///< rows for live packets that are not decided
    bool runs = false;    ///< own()
  };
  explicit Rows(Needs needs) : needs_(needs) {}

  /// Reserves memory for `packets` packets: the functions below do not allocate for fewer.
  void reserve(std::uint32_t packets);
  void clear();
  /// Appends the packets of `unit`. `decided`: the packets for the NF, in the order of the unit. Both must not change
  /// until clear().
  void add(packet::Batch const& unit, std::span<const std::uint32_t> decided);
  /// Call after the last add(). From here on slots() and size() cover all rows.
  void arrange();

  std::size_t units() const { return parts_.size(); }
  packet::Batch const& unit(std::size_t i) const { return parts_[i].unit; }
  /// The decided packets of unit `i`, and the row of the first. Valid until the next add().
  packet::Batch decided(std::size_t i) const {
    return parts_[i].unit.subset(std::span(slots_).subspan(parts_[i].first_decided, parts_[i].decided));
  }
  std::uint32_t first_decided(std::size_t i) const { return parts_[i].first_decided; }
  /// The same for the passed-over packets; after arrange().
  packet::Batch passed(std::size_t i) const {
    return parts_[i].unit.subset(std::span(slots_).subspan(first_passed(i), parts_[i].passed));
  }
  std::uint32_t first_passed(std::size_t i) const { return decided_ + parts_[i].first_passed; }

  /// Whether a row exists; also before arrange().
  bool has_any() const { return !slots_.empty() || !passed_.empty(); }
  /// Number of decided rows.
  std::uint32_t decided() const { return decided_; }
  /// Number of all rows, and the slot of each.
  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::span<const std::uint32_t> slots() const { return slots_; }
  /// Index of the unit of the decided row `row`.
  std::size_t unit_of(std::uint32_t row) const;
  /// Slots used by this launch only, including the slots of its rows: all slots of a unit except replies. Replies exist
  /// on the host only, and their twins must not overwrite them.
  std::span<const SlotRun> own() const { return own_; }

 private:
  struct Part {
    packet::Batch unit;
    std::uint32_t first_decided;
    std::uint32_t decided;
    std::uint32_t first_passed;  ///< after the decided ones of all units
    std::uint32_t passed;
  };
  void add_passed(packet::Batch const& unit, std::span<const std::uint32_t> decided);
  void add_own(packet::Batch const& unit);
  void add_run(std::uint32_t first, std::uint32_t slots);

  Needs needs_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint32_t> passed_;  ///< until arrange()
  std::uint32_t decided_ = 0;
  std::vector<SlotRun> own_;
};

}  // namespace catena::copy
