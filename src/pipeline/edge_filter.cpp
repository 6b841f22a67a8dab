// SPDX-License-Identifier: Apache-2.0
#include "pipeline/edge_filter.hpp"

#include <bit>
#include <cstddef>
#include <optional>
#include <utility>

namespace catena::runtime {

EdgeFilter::EdgeFilter(std::span<const chain::NextNodeTable> tables, std::vector<CongestionMonitor const*> monitors)
    : tables_(tables), monitors_(std::move(monitors)), is_crowded_(monitors_.size()) {}

bool EdgeFilter::look() {
  bool is_any = false;
  for (std::size_t nf = 0; nf < monitors_.size(); ++nf) {
    is_crowded_[nf] = monitors_[nf]->state_now() >= CongestionMonitor::State::kCrowded;
    is_any = is_any || is_crowded_[nf];
  }
  return is_any;
}

void EdgeFilter::refuse(packet::Batch const& packets) {
  for (std::uint32_t i = 0; i < packets.size(); ++i) {
    if (refuses(packets[i])) {
      packets[i].set_verdict(packet::Verdict::kDrop);
      ++refused_;
    }
  }
}

bool EdgeFilter::refuses(packet::Packet const& packet) const {
  for (std::size_t node = 0;;) {
    const std::optional<chain::NextNodeTable::Decision> decision = tables_[node].foresee(packet);
    if (!decision) {
      return false;  // what an NF makes of it decides where it goes
    }
    const auto targets = tables_[node].targets();
    const auto is_crowded = [&](std::size_t target) {
      return targets[target] != chain::kTx && is_crowded_[targets[target]];
    };
    for (std::uint64_t left = decision->mirrors; left != 0; left &= left - 1) {
      if (is_crowded(static_cast<std::size_t>(std::countr_zero(left)))) {
        return true;
      }
    }
    if (decision->to >= targets.size() || targets[decision->to] == chain::kTx) {
      return false;
    }
    if (is_crowded(decision->to)) {
      return true;
    }
    node = targets[decision->to] + 1;  // NFs are in an order in which packets meet them: this ends
  }
}

}  // namespace catena::runtime
