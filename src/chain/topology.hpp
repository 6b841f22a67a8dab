// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/graph.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace catena::chain {

/// The queues between the stages of a shard: one before each NF, one after the last of them, and one before each
/// classifier stage. NFs are numbered from the first of the shard on.
class Topology {
 public:
  /// NFs in a row.
  explicit Topology(std::size_t nfs) : nfs_(nfs), classifier_(nfs + 1), pushers_(nfs + 1, 1) {}
  /// NFs of a graph; `tables`: of rx, followed by the NFs'.
  explicit Topology(std::span<const NextNodeTable> tables);

  std::uint32_t queues() const { return static_cast<std::uint32_t>(pushers_.size()); }
  /// Number of stages that push into a queue.
  std::uint32_t pushers(std::size_t queue) const { return pushers_[queue]; }
  std::size_t before_nf(std::size_t nf) const { return nf; }
  /// Before tx, or before the reshard stage.
  std::size_t last() const { return nfs_; }
  std::size_t after_rx() const { return after(0); }
  std::size_t after_nf(std::size_t nf) const { return after(nf + 1); }
  /// Before the classifier stage after rx (0) or NF `node` - 1; nullopt without such a stage.
  std::optional<std::size_t> classifier(std::size_t node) const { return classifier_[node]; }
  /// For a target of a table.
  std::size_t before_target(std::size_t target) const { return target == kTx ? last() : target; }

 private:
  std::size_t after(std::size_t node) const { return classifier_[node].value_or(next_.empty() ? node : next_[node]); }

  std::size_t nfs_;
  std::vector<std::optional<std::size_t>> classifier_;
  std::vector<std::size_t> next_;  ///< of a graph: the next queue for all packets from rx and each NF
  std::vector<std::uint32_t> pushers_;
};

}  // namespace catena::chain
