// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "copy/body_copy.hpp"

namespace catena::copy {

/// Which packets a launch is about: the units it was given, of each the packets that the NF decides and those that it
/// passes over, and the slots that belong to the launch alone. One row a packet: those that are decided first, in the
/// order of add(), then the others. Belongs to one thread at a time.
class Rows {
 public:
  /// What a launch asks for besides the packets that are decided.
  struct Needs {
    bool passed = false;  ///< rows for packets that are alive and not decided
    bool runs = false;    ///< own()
  };
  explicit Rows(Needs needs) : needs_(needs) {}

  /// Room for so many packets: none of what follows allocates for fewer.
  void reserve(std::uint32_t packets);
  void clear();
  /// The packets of `unit` come next, those in `decided` for the NF, in the order of the unit. Both must not change
  /// until clear().
  void add(packet::Batch const& unit, std::span<const std::uint32_t> decided);
  /// After the last add(): slots() and size() are of all rows from here on.
  void arrange();

  std::size_t units() const { return parts_.size(); }
  packet::Batch const& unit(std::size_t i) const { return parts_[i].unit; }
  /// Packets of unit `i` that are decided, and the row of the first. Good until the next add().
  packet::Batch decided(std::size_t i) const {
    return parts_[i].unit.subset(std::span(slots_).subspan(parts_[i].first_decided, parts_[i].decided));
  }
  std::uint32_t first_decided(std::size_t i) const { return parts_[i].first_decided; }
  /// The same of those that are passed over; after arrange().
  packet::Batch passed(std::size_t i) const {
    return parts_[i].unit.subset(std::span(slots_).subspan(first_passed(i), parts_[i].passed));
  }
  std::uint32_t first_passed(std::size_t i) const { return decided_ + parts_[i].first_passed; }

  /// Whether there is a row; before arrange() too.
  bool has_any() const { return !slots_.empty() || !passed_.empty(); }
  /// Rows of packets that are decided.
  std::uint32_t decided() const { return decided_; }
  /// All rows, and the slot of each.
  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::span<const std::uint32_t> slots() const { return slots_; }
  /// Number of the unit that row `row` of the decided ones is of.
  std::size_t unit_of(std::uint32_t row) const;
  /// Slots that nobody else uses meanwhile, those of the rows among them: a unit's, but for replies, which are on the
  /// host alone and whose twins are not to come back over them.
  std::span<const SlotRun> own() const { return own_; }

 private:
  struct Part {
    packet::Batch unit;
    std::uint32_t first_decided;
    std::uint32_t decided;
    std::uint32_t first_passed;  ///< behind the decided ones of all units
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
