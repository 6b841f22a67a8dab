// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/graph.hpp"
#include "pipeline/flow.hpp"

#include <catena/core/counter.hpp>
#include <catena/packet/batch.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace catena::runtime {

/// At rx of a live source, which cannot wait: finds packets on their way to an NF with half of its share of memory
/// used, as far as their headers tell. They are dropped before any work on them, so that packets of other branches
/// continue. Below that, a burst waits. One thread at a time; counts: any.
class EdgeFilter {
 public:
  /// `tables`: of rx and of the NFs. `monitors`: of the NFs, by their numbers. All outlive this.
  EdgeFilter(std::span<const chain::NextNodeTable> tables, std::vector<CongestionMonitor const*> monitors);

  /// Checks all rings for the next packets: whether any packet could be refused.
  bool look();
  /// Sets the verdict of packets on their way to such an NF at the last look(), and counts them.
  void refuse(packet::Batch const& packets);
  /// Refused packets.
  std::uint64_t refused() const { return refused_; }

 private:
  bool refuses(packet::Packet const& packet) const;

  std::span<const chain::NextNodeTable> tables_;
  std::vector<CongestionMonitor const*> monitors_;
  std::vector<bool> is_crowded_;  ///< of each NF, at the last check
  Counter refused_;
};

}  // namespace catena::runtime
