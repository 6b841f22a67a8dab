// SPDX-License-Identifier: Apache-2.0
#include "io/flow_turns.hpp"

#include <algorithm>
#include <numeric>

namespace catena::io {

std::vector<std::uint32_t> FlowTurns::all(std::uint32_t flows) {
  std::vector<std::uint32_t> all(flows);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

std::uint64_t FlowTurns::of_first(std::uint64_t packets) const {
  const auto in_last_round = std::lower_bound(own_.begin(), own_.end(), packets % flows_) - own_.begin();
  return packets / flows_ * own_.size() + static_cast<std::uint64_t>(in_last_round);
}

double FlowTurns::part_of(std::uint64_t per_second) const {
  return static_cast<double>(per_second) * static_cast<double>(own_.size()) / flows_;
}

Result<std::vector<FlowTurns>> divide_flows(FlowTemplates const& frames, std::uint32_t flows, std::uint32_t parts,
                                            PartOf const& part_of) {
  // a pool of its own: a packet is one of a pool
  CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<memory::PacketPool> pool,
                          memory::PacketPool::create(memory::kMinSlots));
  memory::Unit& unit = *pool->acquire_unit();
  pool->acquire_slots(unit, 1);
  unit.count = 1;
  const std::uint32_t slot = unit.slots()[0];
  std::vector<std::vector<std::uint32_t>> own(parts);
  for (std::uint32_t flow = 0; flow < flows; ++flow) {
    const std::uint32_t length = frames.write(flow, 0, 0, pool->slot(slot) + packet::kSlotHeadroom);
    pool->set_arrived(slot, length, flow, 0);
    own[part_of(pool->batch(unit)[0])].push_back(flow);
  }
  std::vector<FlowTurns> turns;
  for (std::vector<std::uint32_t>& of_part : own) {
    turns.emplace_back(flows, std::move(of_part));
  }
  return turns;
}

}  // namespace catena::io
