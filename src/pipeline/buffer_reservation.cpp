// SPDX-License-Identifier: Apache-2.0
#include "pipeline/buffer_reservation.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <numeric>
#include <string>

namespace catena::runtime {

namespace {

std::uint32_t sum_from(std::vector<std::uint32_t> const& counts, std::uint32_t number) {
  return std::accumulate(counts.begin() + number, counts.end(), 0U);
}

}  // namespace

std::uint32_t BufferReservation::add(std::uint32_t parts, std::uint32_t slots) {
  parts_.push_back(parts);
  missing_.push_back(parts);
  slots_.push_back(slots);
  missing_slots_.push_back(slots);
  return static_cast<std::uint32_t>(parts_.size() - 1);
}

std::uint32_t BufferReservation::wanted_from(std::uint32_t number) const { return sum_from(parts_, number); }

std::uint32_t BufferReservation::slots_wanted_from(std::uint32_t number) const { return sum_from(slots_, number); }

bool BufferReservation::take(std::uint32_t number, std::span<memory::Unit*> parts) {
  const std::scoped_lock lock(mutex_);
  // nobody else takes units from the pool, and others may only have given some back since it was asked
  if (pool_->free_units() < sum_from(missing_, number)) {
    return false;
  }
  for (memory::Unit*& part : parts) {
    part = part == nullptr ? pool_->acquire_unit() : part;
  }
  missing_[number] = static_cast<std::uint32_t>(std::count(parts.begin(), parts.end(), nullptr));
  return missing_[number] == 0;
}

bool BufferReservation::take_slots(std::uint32_t number, std::vector<std::uint32_t>& slots) {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t missing = missing_slots_[number];
  if (pool_->free_slots() < sum_from(missing_slots_, number)) {
    return false;
  }
  const std::size_t had = slots.size();
  slots.resize(had + missing);
  // a port may have taken some since
  if (!pool_->acquire_slots(std::span(slots).subspan(had))) {
    slots.resize(had);
    return false;
  }
  missing_slots_[number] = 0;
  return true;
}

void BufferReservation::used(std::uint32_t number, std::uint32_t parts, std::uint32_t slots) {
  const std::scoped_lock lock(mutex_);
  missing_[number] += parts;
  missing_slots_[number] += slots;
}

memory::Unit* BufferReservation::take_one() {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t slots = sum_from(missing_slots_, 0);
  const bool is_free = pool_->free_units() > sum_from(missing_, 0) &&
                       (slots == 0 || pool_->free_slots() >= slots + pool_->unit_packets());
  return is_free ? pool_->acquire_unit() : nullptr;
}

Status pending_slots(memory::PacketPool const& pool, std::uint32_t units, std::uint32_t slots) {
  if (!pool.exhausted(units, slots)) {
    return absl::OkStatus();
  }
  const std::string copies = slots == 0 ? std::string() : concat(" beside ", slots, " slots for copies");
  return absl::ResourceExhaustedError(
      concat("unfinished device work keeps ", pool.quarantined_slots(), " of the ", pool.slots(),
             " slots of the packet pool, and the rest does not hold ", units, " units, or one of ", pool.unit_packets(),
             " packets", copies,
             ": the run cannot continue. A larger tuning.pool_slots lets it, or a longer "
             "tuning.device_limit_ms if the device is slow"));
}

}  // namespace catena::runtime
