// SPDX-License-Identifier: Apache-2.0
#include "chain/topology.hpp"

#include <algorithm>

namespace catena::chain {

Topology::Topology(std::span<const NextNodeTable> tables)
    : nfs_(tables.size() - 1), classifier_(tables.size()), next_(tables.size()), pushers_(tables.size()) {
  for (std::size_t node = 0; node < tables.size(); ++node) {
    NextNodeTable const& table = tables[node];
    for (const std::size_t target : table.targets()) {
      ++pushers_[before_target(target)];
    }
    if (table.is_direct()) {
      next_[node] = before_target(table.targets().front());
      continue;
    }
    // a classifier also has packets for tx: those that ended
    pushers_[last()] += std::ranges::find(table.targets(), kTx) == table.targets().end() ? 1 : 0;
    classifier_[node] = pushers_.size();
    pushers_.push_back(1);
  }
}

}  // namespace catena::chain
