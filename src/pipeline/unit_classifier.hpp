// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/graph.hpp"

#include <catena/core/counter.hpp>
#include <catena/packet/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace catena::runtime {

/// Decides the branch and the copies of each packet of a unit by a NextNodeTable, and counts the decisions. It moves no
/// packet. One thread; counts: any.
class UnitClassifier {
 public:
  /// `table` outlives this. `targets`: number of its targets, which are the first branches. `ended`: branch of packets
  /// without a next NF, to tx.
  UnitClassifier(chain::NextNodeTable const& table, std::size_t targets, std::size_t ended)
      : table_(&table), ended_(ended), sent_(targets), mirrored_(targets) {}

  /// Decides all packets of a unit. The common branch of all of them; nullopt: the unit has to be divided.
  std::optional<std::size_t> decide(packet::Batch const& packets);

  // Of packet number `i` of the unit decided last.
  /// A bit per target that gets a copy.
  std::uint64_t mirrors(std::size_t i) const { return mirrors_[i]; }
  /// Counts a copy. Make the copies before conclude(): the verdict of a dropped packet is set there.
  void count_copy(std::size_t target) { ++mirrored_[target]; }
  /// Sets the verdict of a packet that is dropped, and counts it. Returns the branch of the packet.
  std::size_t conclude(std::size_t i, packet::Packet const& packet) {
    Counter* const drops = drops_of(branches_[i]);
    if (drops == nullptr) {
      return branches_[i];
    }
    ++*drops;
    packet.set_verdict(packet::Verdict::kDrop);
    return ended_;
  }

  chain::NextNodeTable const& table() const { return *table_; }
  std::uint64_t sent_to(std::size_t target) const { return sent_[target]; }
  std::uint64_t mirrored_to(std::size_t target) const { return mirrored_[target]; }
  std::uint64_t dropped() const { return dropped_; }      ///< by a row
  std::uint64_t unmatched() const { return unmatched_; }  ///< dropped, as no row matched
  std::uint64_t malformed() const { return malformed_; }  ///< dropped, as a row needs their hidden ports

 private:
  /// The count of packets dropped by a decision; null if it sends them on.
  Counter* drops_of(std::uint8_t decision) {
    switch (decision) {
      case chain::NextNodeTable::kDropped:
        return &dropped_;
      case chain::NextNodeTable::kUnmatched:
        return &unmatched_;
      case chain::NextNodeTable::kMalformed:
        return &malformed_;
      default:
        return nullptr;
    }
  }

  chain::NextNodeTable const* table_;
  std::size_t ended_;
  std::vector<std::uint8_t> branches_;  ///< of the current unit: for each packet its branch, or a drop
  std::vector<std::uint64_t> mirrors_;  ///< and the targets of its copies
  std::vector<Counter> sent_;
  std::vector<Counter> mirrored_;
  Counter dropped_;
  Counter unmatched_;
  Counter malformed_;
};

}  // namespace catena::runtime
