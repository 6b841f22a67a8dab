// SPDX-License-Identifier: Apache-2.0
#include "dataplane/ring.hpp"

#include <catena/core/text.hpp>

#include <rte_ring.h>

#include <bit>
#include <cstdlib>

namespace catena::dataplane {

void Ring::Free::operator()(rte_ring* ring) const { std::free(ring); }

Result<std::unique_ptr<Ring>> Ring::create(std::uint32_t units) {
  const std::uint32_t slots = std::bit_ceil(units + 1);
  const ssize_t bytes = rte_ring_get_memsize(slots);
  if (bytes < 0) {
    return absl::InvalidArgumentError(concat("a ring for ", units, " units cannot be made"));
  }
  const std::size_t rounded =
      (static_cast<std::size_t>(bytes) + RTE_CACHE_LINE_SIZE - 1) / RTE_CACHE_LINE_SIZE * RTE_CACHE_LINE_SIZE;
  std::unique_ptr<Ring> ring(new Ring());
  ring->ring_.reset(static_cast<rte_ring*>(std::aligned_alloc(RTE_CACHE_LINE_SIZE, rounded)));
  if (!ring->ring_) {
    return absl::ResourceExhaustedError(concat("no memory for a ring of ", units, " units"));
  }
  if (rte_ring_init(ring->ring_.get(), "units", slots, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0) {
    return absl::InternalError(concat("rte_ring_init refused ", slots, " entries"));
  }
  return ring;
}

void Ring::push(Unit* unit) { rte_ring_sp_enqueue(ring_.get(), unit); }

void Ring::push(std::span<Unit* const> units) {
  rte_ring_sp_enqueue_bulk(ring_.get(), reinterpret_cast<void* const*>(units.data()),
                           static_cast<unsigned int>(units.size()), nullptr);
}

Unit* Ring::pop() {
  void* unit = nullptr;
  return rte_ring_sc_dequeue(ring_.get(), &unit) == 0 ? static_cast<Unit*>(unit) : nullptr;
}

bool Ring::empty() const { return rte_ring_empty(ring_.get()) != 0; }

}  // namespace catena::dataplane
