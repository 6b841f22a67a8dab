// SPDX-License-Identifier: Apache-2.0
#include "packet/memory/packet_pool.hpp"

#include <algorithm>
#include <array>

namespace catena::memory {
namespace {

/// Beside those that packets are in.
constexpr std::uint32_t kSpareUnits = 64;

std::uint32_t units_for(std::uint32_t slots, std::uint32_t unit_packets, std::uint32_t parts) {
  if (unit_packets == 0) {
    return kSpareUnits;  // a shape that is refused
  }
  // a part has a packet at least
  const std::uint64_t in_use = std::uint64_t{2} * slots / unit_packets * parts;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(in_use, std::max(slots, 2 * slots / unit_packets))) +
         kSpareUnits * parts;
}

}  // namespace

Result<std::unique_ptr<PacketPool>> PacketPool::create(std::uint32_t slots, std::uint32_t unit_packets,
                                                       std::uint32_t queues, std::uint32_t parts) {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Arena> arena,
                          Arena::create({slots, unit_packets, queues, units_for(slots, unit_packets, parts)}));
  auto pool = std::unique_ptr<PacketPool>(new PacketPool(std::move(arena)));
  pool->missing_.resize(slots);
  return pool;
}

Result<std::unique_ptr<PacketPool>> PacketPool::create_over(int fd, std::uint32_t slots, std::uint32_t unit_packets,
                                                            std::uint32_t queues) {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Arena> arena,
                          Arena::create_over({slots, unit_packets, queues, units_for(slots, unit_packets, 1)}, fd));
  return std::unique_ptr<PacketPool>(new PacketPool(std::move(arena)));
}

Result<std::unique_ptr<PacketPool>> PacketPool::create_beside(std::shared_ptr<PacketPool> first,
                                                              std::uint32_t unit_packets, std::uint32_t queues,
                                                              std::uint32_t parts) {
  if (first->first_ != nullptr) {
    first = first->first_;  // so that one after another keeps nothing of those between
  }
  const std::uint32_t slots = first->slots();
  CATENA_ASSIGN_OR_RETURN(
      std::unique_ptr<Arena> arena,
      Arena::create_beside(first->arena(), {slots, unit_packets, queues, units_for(slots, unit_packets, parts)}));
  return std::unique_ptr<PacketPool>(new PacketPool(std::move(arena), std::move(first)));
}

Unit* PacketPool::acquire_unit() {
  Unit* unit = nullptr;
  return acquire_units(std::span(&unit, 1)) ? unit : nullptr;
}

bool PacketPool::acquire_units(std::span<Unit*> units) {
  std::array<std::uint32_t, 64> numbers;
  const auto wanted = std::span(numbers).first(std::min(units.size(), numbers.size()));
  if (wanted.size() != units.size() || !arena_->free_units().pop(wanted)) {
    return false;
  }
  std::transform(wanted.begin(), wanted.end(), units.begin(),
                 [this](std::uint32_t number) { return &arena_->unit(number); });
  return true;
}

bool PacketPool::acquire_slots(Unit& unit, std::uint32_t count) {
  return arena_->free_slots().acquire(std::span(unit.slots() + unit.count, count));
}

void PacketPool::release_unit(Unit* unit) {
  unit->count = 0;
  unit->host_fallback = false;
  unit->device_epoch = 0;
  const std::uint32_t number = arena_->number_of(*unit);
  arena_->free_units().push(std::span(&number, 1));
}

void PacketPool::quarantine(Unit const& unit) {
  (first_ == nullptr ? quarantined_slots_ : first_->quarantined_slots_)
      .fetch_add(unit.count, std::memory_order_relaxed);
  quarantined_units_.fetch_add(1, std::memory_order_relaxed);
}

bool PacketPool::exhausted(std::uint32_t units, std::uint32_t slots) const {
  return this->slots() - quarantined_slots() < unit_packets() + slots ||
         arena_->units() - quarantined_units_.load(std::memory_order_relaxed) < units;
}

}  // namespace catena::memory
