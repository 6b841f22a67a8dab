// SPDX-License-Identifier: Apache-2.0
#include "pipeline/unit_joiner.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace catena::runtime {

bool UnitJoiner::join(memory::Unit& unit) {
  if (held_ == nullptr || held_->count + unit.count > pool_->unit_packets() ||
      held_->host_fallback != unit.host_fallback || held_->device_epoch != unit.device_epoch) {
    return false;
  }
  std::ranges::copy(unit.used_slots(), held_->slots() + held_->count);
  held_->count += unit.count;
  held_->end_index = unit.end_index;
  held_->last_arrival_ns = unit.last_arrival_ns;
  if (lines_ != nullptr) {
    std::vector<nf::Arrival>& arrivals = lines_->of(unit).arrivals;
    std::ranges::move(arrivals, std::back_inserter(lines_->of(*held_).arrivals));
    arrivals.clear();
  }
  unit.count = 0;
  pool_->release_unit(&unit);
  return true;
}

bool UnitJoiner::is_due() const {
  return held_ != nullptr &&
         (held_->count == pool_->unit_packets() || pool_->free_units() >= pool_->arena().units() / 2);
}

}  // namespace catena::runtime
