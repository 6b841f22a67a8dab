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

bool UnitJoiner::is_due() {
  if (held_ == nullptr || held_->count == pool_->unit_packets()) {
    return held_ != nullptr;
  }
  std::chrono::steady_clock::duration wait = std::chrono::milliseconds(1);
  const std::uint32_t free = std::max(1U, pool_->free_units());
  const std::uint32_t scarce = pool_->arena().units() / 2;
  if (free >= scarce) {
    return true;
  }
  for (std::uint32_t part = scarce / 2; part >= free; part /= 2) {
    wait *= 2;
  }
  const auto now = std::chrono::steady_clock::now();
  if (since_ == std::chrono::steady_clock::time_point()) {
    since_ = now;
  }
  return now - since_ >= wait;
}

}  // namespace catena::runtime
