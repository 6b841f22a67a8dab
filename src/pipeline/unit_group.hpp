// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/packet_pool.hpp"

#include <catena/packet/batch.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace catena::runtime {

/// The packets of `units`, at least one, in order, as one batch. So an NF prefetches headers across small units, and
/// each of its calls costs as much as for a large unit. Valid as long as the units and `slots` stay. With several
/// units, their slot numbers are appended to `slots`, which must have reserved the capacity, so that earlier batches
/// stay valid.
inline packet::Batch batch_of(memory::PacketPool const& pool, std::span<memory::Unit* const> units,
                              std::vector<std::uint32_t>& slots) {
  const packet::Batch first = pool.batch(*units.front());
  if (units.size() == 1) {
    return first;
  }
  const std::size_t begin = slots.size();
  for (memory::Unit const* unit : units) {
    slots.insert(slots.end(), unit->used_slots().begin(), unit->used_slots().end());
  }
  return first.subset(std::span(slots).subspan(begin));
}

}  // namespace catena::runtime
