// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/slot.hpp>

#include <cstdint>
#include <span>
#include <type_traits>

namespace catena::memory {

/// Packets per unit: the default of a chain, and the maximum.
inline constexpr std::uint32_t kDefaultUnitPackets = 256;
inline constexpr std::uint32_t kMaxUnitPackets = 1024;

/// Packets that travel together, up to the arena's `unit_packets`. Dropped packets keep their place. Owned by one stage
/// at a time. A unit is in the arena, followed by its slot numbers: it is never copied, and holds no pointer.
struct alignas(packet::kCacheLineBytes) Unit {
  std::uint32_t count = 0;
  /// A device NF of the plan did not run on the device: data that downstream NFs expect there is on the host.
  bool host_fallback = false;
  /// An unresponsive device may still write to the packets: their slots are never handed out again.
  bool quarantined = false;
  /// Epoch of the device that holds results of device NFs; 0: no device does, as for newly received packets.
  std::uint32_t device_epoch = 0;
  /// The numbers from first_index to end_index - 1 belong to the unit's packets, in order, and to frames dropped by rx
  /// before, between or after them.
  std::uint64_t first_index = 0;
  std::uint64_t end_index = 0;
  /// When the first packet was due, if the source has a schedule, else when rx took the packets; steady clock.
  std::uint64_t arrival_ns = 0;
  std::uint64_t last_arrival_ns = 0;  ///< likewise of the last packet; the others are evenly spaced between

  Unit() = default;
  Unit(Unit const&) = delete;
  Unit& operator=(Unit const&) = delete;

  /// Slot numbers of the packets, with space for the arena's `unit_packets`.
  std::uint32_t* slots() { return reinterpret_cast<std::uint32_t*>(this + 1); }
  std::uint32_t const* slots() const { return reinterpret_cast<std::uint32_t const*>(this + 1); }
  std::span<const std::uint32_t> used_slots() const { return {slots(), count}; }
};
static_assert(std::is_standard_layout_v<Unit> && std::is_trivially_destructible_v<Unit>);

}  // namespace catena::memory
