// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow_paths.hpp"

#include <algorithm>
#include <iterator>

namespace catena::runtime {

std::vector<std::size_t> FlowPaths::nfs_after(std::size_t node) const {
  std::vector<std::size_t> after;
  if (tables.empty()) {
    after.assign(node < nfs.size() ? 1 : 0, node);
    return after;
  }
  std::ranges::copy_if(tables[node].targets(), std::back_inserter(after),
                       [](std::size_t target) { return target != chain::kTx; });
  return after;
}

bool FlowPaths::is_before_tx(std::size_t node) const {
  if (tables.empty()) {
    return node == nfs.size();
  }
  const auto targets = tables[node].targets();
  return std::ranges::find(targets, chain::kTx) != targets.end();
}

bool FlowPaths::keeps_shard(std::size_t node, std::size_t nf) const {
  return node > 0 ? nfs[nf].segment == nfs[node - 1].segment : has_own_ends;
}

std::vector<std::uint32_t> FlowPaths::senders() const {
  std::vector<std::uint32_t> senders(nfs.size());
  for (std::size_t node = 0; node <= nfs.size(); ++node) {
    for (const std::size_t nf : nfs_after(node)) {
      ++senders[nf];
    }
  }
  return senders;
}

}  // namespace catena::runtime
