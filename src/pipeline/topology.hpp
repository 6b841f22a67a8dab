// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/graph.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace catena::runtime {

/// The queues between the stages of a shard: one before each NF, one after the last of them, and one before each
/// steering stage. NFs are numbered from the first of the shard on.
class Topology {
 public:
  /// NFs in a row.
  explicit Topology(std::size_t nfs) : nfs_(nfs), steering_(nfs + 1), pushers_(nfs + 1, 1) {}
  /// NFs of a graph; `tables`: of rx, followed by the NFs'.
  explicit Topology(std::span<const chain::NextNodeTable> tables);

  std::uint32_t queues() const { return static_cast<std::uint32_t>(pushers_.size()); }
  /// Number of stages that push into a queue.
  std::uint32_t pushers(std::size_t queue) const { return pushers_[queue]; }
  std::size_t in_front_of(std::size_t nf) const { return nf; }
  /// Before tx, or before the reshard stage.
  std::size_t last() const { return nfs_; }
  std::size_t behind_rx() const { return behind(0); }
  std::size_t behind_nf(std::size_t nf) const { return behind(nf + 1); }
  /// Before the steering stage after rx (0) or NF `node` - 1; nullopt without such a stage.
  std::optional<std::size_t> steering(std::size_t node) const { return steering_[node]; }
  /// For a target of a table.
  std::size_t in_front_of_target(std::size_t target) const { return target == chain::kTx ? last() : target; }

 private:
  std::size_t behind(std::size_t node) const { return steering_[node].value_or(next_.empty() ? node : next_[node]); }

  std::size_t nfs_;
  std::vector<std::optional<std::size_t>> steering_;
  std::vector<std::size_t> next_;  ///< of a graph: the next queue for all packets from rx and each NF
  std::vector<std::uint32_t> pushers_;
};

}  // namespace catena::runtime
