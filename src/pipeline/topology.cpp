// SPDX-License-Identifier: Apache-2.0
#include "pipeline/topology.hpp"

#include <algorithm>

namespace catena::runtime {

Topology::Topology(std::span<const chain::NextNodeTable> tables)
    : nfs_(tables.size() - 1), steering_(tables.size()), next_(tables.size()), pushers_(tables.size()) {
  for (std::size_t node = 0; node < tables.size(); ++node) {
    chain::NextNodeTable const& table = tables[node];
    for (const std::size_t target : table.targets()) {
      ++pushers_[in_front_of_target(target)];
    }
    if (table.is_direct()) {
      next_[node] = in_front_of_target(table.targets().front());
      continue;
    }
    // who steers has packets for tx, too: those that ended
    pushers_[last()] += std::ranges::find(table.targets(), chain::kTx) == table.targets().end() ? 1 : 0;
    steering_[node] = pushers_.size();
    pushers_.push_back(1);
  }
}

}  // namespace catena::runtime
