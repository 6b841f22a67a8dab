// SPDX-License-Identifier: Apache-2.0
#include "runtime/unit_reserve.hpp"

#include <algorithm>
#include <numeric>

namespace catena::runtime {

std::uint32_t UnitReserve::add(std::uint32_t parts) {
  parts_.push_back(parts);
  missing_.push_back(parts);
  return static_cast<std::uint32_t>(parts_.size() - 1);
}

std::uint32_t UnitReserve::wanted_from(std::uint32_t number) const {
  return std::accumulate(parts_.begin() + number, parts_.end(), 0U);
}

std::uint32_t UnitReserve::missing_from(std::uint32_t number) const {
  return std::accumulate(missing_.begin() + number, missing_.end(), 0U);
}

bool UnitReserve::take(std::uint32_t number, std::span<memory::Unit*> parts) {
  const std::scoped_lock lock(mutex_);
  // nobody else takes units from the pool, and others may only have given some back since it was asked
  if (pool_->free_units() < missing_from(number)) {
    return false;
  }
  for (memory::Unit*& part : parts) {
    part = part == nullptr ? pool_->acquire_unit() : part;
  }
  missing_[number] = static_cast<std::uint32_t>(std::count(parts.begin(), parts.end(), nullptr));
  return missing_[number] == 0;
}

void UnitReserve::used(std::uint32_t number, std::uint32_t parts) {
  const std::scoped_lock lock(mutex_);
  missing_[number] += parts;
}

memory::Unit* UnitReserve::take_one() {
  const std::scoped_lock lock(mutex_);
  return pool_->free_units() > missing_from(0) ? pool_->acquire_unit() : nullptr;
}

}  // namespace catena::runtime
