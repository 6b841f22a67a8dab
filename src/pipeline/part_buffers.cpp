// SPDX-License-Identifier: Apache-2.0
#include "pipeline/part_buffers.hpp"

#include <algorithm>
#include <utility>

namespace catena::runtime {

PartBuffers::PartBuffers(memory::PacketPool& pool, BufferReservation& reserve, std::size_t branches,
                         std::size_t mirrored)
    : pool_(&pool), reserve_(&reserve), branches_(branches), parts_(branches + mirrored) {
  const std::size_t copies = mirrored * pool.unit_packets();
  spare_slots_.reserve(copies);
  number_ = reserve.add(static_cast<std::uint32_t>(parts_.size()), static_cast<std::uint32_t>(copies));
}

bool PartBuffers::is_ready() {
  const bool has_parts = std::ranges::find(parts_, nullptr) == parts_.end() || reserve_->take(number_, parts_);
  return has_parts && (spare_slots_.size() == spare_slots_.capacity() || reserve_->take_slots(number_, spare_slots_));
}

Status PartBuffers::pending() const {
  return pending_slots(*pool_, reserve_->wanted_from(number_), reserve_->slots_wanted_from(number_));
}

void PartBuffers::begin(memory::Unit& part, std::size_t number, memory::Unit const& unit) const {
  part.first_index = unit.first_index;
  part.end_index = unit.end_index;
  part.arrival_ns = unit.arrival_ns;
  part.last_arrival_ns = unit.last_arrival_ns;
  part.host_fallback = !has_copies(number) && unit.host_fallback;
  part.device_epoch = has_copies(number) ? 0 : unit.device_epoch;
}

void PartBuffers::report_used() {
  std::uint32_t used = 0;
  for (memory::Unit const* const part : parts_) {
    used += part->count > 0 ? 1 : 0;
  }
  spare_slots_.resize(spare_slots_.size() - used_slots_);
  reserve_->used(number_, used, std::exchange(used_slots_, 0));
}

memory::Unit* PartBuffers::take(std::size_t number) {
  return parts_[number]->count > 0 ? std::exchange(parts_[number], nullptr) : nullptr;
}

void PartBuffers::close() {
  for (memory::Unit*& part : parts_) {
    if (part != nullptr) {
      pool_->release_unit(std::exchange(part, nullptr));
    }
  }
  pool_->release_slots(spare_slots_);
  spare_slots_.clear();
}

}  // namespace catena::runtime
