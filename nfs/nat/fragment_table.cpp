// SPDX-License-Identifier: Apache-2.0
#include "fragment_table.hpp"

namespace catena::nat {

void FragmentTable::remember(DatagramKey const& key, AddressPair const& addresses, std::uint64_t now_s) {
  if (const std::uint32_t known = position_of(key); known != HashIndex::kNone) {
    forget(known);
  }
  Entry& oldest = ring_[next_];
  if (oldest.is_indexed) {
    evicted_ += is_current(oldest, now_s) ? 1 : 0;
    forget(next_);
  }
  oldest = {.key = key, .addresses = addresses, .since_s = now_s, .is_indexed = true};
  index_.insert(hash(key), next_);
  next_ = next_ + 1 == ring_.size() ? 0 : next_ + 1;
}

std::optional<AddressPair> FragmentTable::find(DatagramKey const& key, std::uint64_t now_s) const {
  const std::uint32_t position = position_of(key);
  if (position == HashIndex::kNone || !is_current(ring_[position], now_s)) {
    return std::nullopt;
  }
  return ring_[position].addresses;
}

void FragmentTable::forget(std::uint32_t position) {
  index_.erase(hash(ring_[position].key), position, [this](std::uint32_t other) { return hash(ring_[other].key); });
  ring_[position].is_indexed = false;
}

}  // namespace catena::nat
