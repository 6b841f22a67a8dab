// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/graph.hpp"
#include "packet/memory/unit_queue.hpp"
#include "pipeline/host_stages.hpp"
#include "pipeline/stage.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace catena::runtime {

/// An NF in one shard.
struct NfPlace {
  memory::UnitQueue* in = nullptr;    ///< its ring
  memory::UnitQueue* last = nullptr;  ///< the last queue of the shard: for packets refused by a bound
  PacketStage* stage = nullptr;       ///< null: an earlier NF in the same process has the stage
};

/// An NF in all shards.
struct NfPath {
  std::string name;
  std::size_t segment = 0;           ///< NFs of one segment pass packets on within a shard
  std::size_t last = 0;              ///< number of the last NF of its stage: its own, or the last one in its process
  std::vector<NfPlace> shards = {};  ///< at least one
};

struct RxPath {
  RxStage* stage = nullptr;
  bool is_live = false;  ///< its source cannot wait
};

/// The rings of a chain in which packets wait, their stages, and the ways of packets between them. Its nodes are rx, 0,
/// and NF `node` - 1. The functions are pure.
struct FlowPaths {
  std::vector<NfPath> nfs = {};                       ///< in the order of the chain
  std::vector<RxPath> rx = {};                        ///< at least one
  bool has_own_ends = false;                          ///< rx number i is of shard i alone
  std::span<const chain::NextNodeTable> tables = {};  ///< of rx, and of each NF; empty: NFs in a row

  bool has_branches() const { return chain::has_branches(tables); }
  /// Numbers of the NFs next to a node.
  std::vector<std::size_t> nfs_after(std::size_t node) const;
  /// Whether tx may be next to a node.
  bool is_before_tx(std::size_t node) const;
  /// Whether packets of a node stay in their shard on the way to NF `nf`.
  bool keeps_shard(std::size_t node, std::size_t nf) const;
  /// For each NF, the number of nodes before it.
  std::vector<std::uint32_t> senders() const;
};

}  // namespace catena::runtime
