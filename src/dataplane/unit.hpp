// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/outcome.hpp>
#include <catena/packet/batch.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "nf/record.hpp"

struct rte_mbuf;

namespace catena::dataplane {

/// Packets of a unit: what a chain has unless it says otherwise, and the most that it may ask for.
inline constexpr std::uint32_t kDefaultUnitPackets = 256;
inline constexpr std::uint32_t kMaxUnitPackets = 1024;

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

/// Packets that travel together, as many as the pool's units hold at most. Dropped packets keep their place. Owned by
/// one stage at a time.
struct Unit {
  std::uint32_t count = 0;
  /// The numbers from first_index to end_index - 1 are those of the unit's packets, in order, and of frames that rx
  /// dropped before, between or after them.
  std::uint64_t first_index = 0;
  std::uint64_t end_index = 0;
  std::uint64_t arrival_ns = 0;      ///< when rx took the packets, steady clock
  std::vector<std::uint32_t> slots;  ///< room for the unit's most packets
  std::vector<rte_mbuf*> mbufs;      ///< the same
  /// A device NF of the plan did not work on the device: what later NFs expect there is on the host.
  bool host_fallback = false;
  /// A device that never answered may still write into the packets: their slots are never given out again.
  bool quarantined = false;
  std::vector<UnitRecord> records;
  std::vector<UnitAlert> alerts;
  std::vector<nf::Arrival> arrivals;  ///< of its packets, in order; only where lines are written about them

  std::span<const std::uint32_t> used_slots() const { return {slots.data(), count}; }
};

}  // namespace catena::dataplane
