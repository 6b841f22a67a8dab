// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/graph.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace catena::runtime {

/// Which queues lie between the stages of a shard: one in front of each NF, one behind the last of them, and one in
/// front of each steering stage. NFs are numbered from the first of the shard on.
class Wiring {
 public:
  /// NFs in a row.
  explicit Wiring(std::size_t nfs) : nfs_(nfs), steering_(nfs + 1), pushers_(nfs + 1, 1) {}
  /// NFs of a graph; `tables`: that of rx, and behind it those of the NFs.
  explicit Wiring(std::span<const chain::SteerTable> tables);

  std::uint32_t queues() const { return static_cast<std::uint32_t>(pushers_.size()); }
  /// Stages that push into a queue.
  std::uint32_t pushers(std::size_t queue) const { return pushers_[queue]; }
  std::size_t in_front_of(std::size_t nf) const { return nf; }
  /// In front of tx, or of who divides packets among shards anew.
  std::size_t last() const { return nfs_; }
  std::size_t behind_rx() const { return behind(0); }
  std::size_t behind_nf(std::size_t nf) const { return behind(nf + 1); }
  /// In front of the steering stage behind rx, 0, or NF `node` - 1; none: it needs none.
  std::optional<std::size_t> steering(std::size_t node) const { return steering_[node]; }
  /// Of the targets of a table.
  std::size_t in_front_of_target(std::size_t target) const { return target == chain::kTx ? last() : target; }

 private:
  std::size_t behind(std::size_t node) const { return steering_[node].value_or(next_.empty() ? node : next_[node]); }

  std::size_t nfs_;
  std::vector<std::optional<std::size_t>> steering_;
  std::vector<std::size_t> next_;  ///< of a graph: the queue where all packets go from rx and each NF
  std::vector<std::uint32_t> pushers_;
};

}  // namespace catena::runtime
