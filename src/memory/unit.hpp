// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/slot.hpp>

#include <cstdint>
#include <span>
#include <type_traits>

namespace catena::memory {

/// Packets of a unit: what a chain has unless it says otherwise, and the most that it may ask for.
inline constexpr std::uint32_t kDefaultUnitPackets = 256;
inline constexpr std::uint32_t kMaxUnitPackets = 1024;

/// Packets that travel together, as many as the arena's units hold at most. Dropped packets keep their place. Owned by
/// one stage at a time. Lies in the arena with the slot numbers behind it: it is never copied, and holds no pointer.
struct alignas(packet::kCacheLineBytes) Unit {
  std::uint32_t count = 0;
  /// A device NF of the plan did not work on the device: what later NFs expect there is on the host.
  bool host_fallback = false;
  /// A device that never answered may still write into the packets: their slots are never given out again.
  bool quarantined = false;
  /// Which device, since when, has what device NFs left there; 0: none, as for packets that just came.
  std::uint32_t device_epoch = 0;
  /// Which of the chain's configurations, one after the other, decides the packets: that which was in force when rx
  /// took them. Never less than that of a unit before.
  std::uint32_t version = 0;
  /// The numbers from first_index to end_index - 1 are those of the unit's packets, in order, and of frames that rx
  /// dropped before, between or after them.
  std::uint64_t first_index = 0;
  std::uint64_t end_index = 0;
  /// When the first packet was due, where the source has a timetable, else when rx took the packets; steady clock.
  std::uint64_t arrival_ns = 0;
  std::uint64_t last_arrival_ns = 0;  ///< as arrival_ns, of the last packet; those between come evenly

  Unit() = default;
  Unit(Unit const&) = delete;
  Unit& operator=(Unit const&) = delete;

  /// Slot numbers of the packets; there is room for the arena's `unit_packets`.
  std::uint32_t* slots() { return reinterpret_cast<std::uint32_t*>(this + 1); }
  std::uint32_t const* slots() const { return reinterpret_cast<std::uint32_t const*>(this + 1); }
  std::span<const std::uint32_t> used_slots() const { return {slots(), count}; }
};
static_assert(std::is_standard_layout_v<Unit> && std::is_trivially_destructible_v<Unit>);

}  // namespace catena::memory
