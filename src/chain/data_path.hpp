// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/graph.hpp"
#include "chain/run_options.hpp"
#include "chain/segments.hpp"
#include "chain/topology.hpp"
#include "nf/instance.hpp"

#include <catena/core/status.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace catena::chain {

/// The path of packets through the NFs of a chain: the part of its layout (see resolve()) known only with the NFs.
/// Nothing changes it after data_path_of().
///
/// Thread rule: any thread.
struct DataPath {
  std::vector<NextNodeTable> tables = {};  ///< of a graph: of rx, followed by the NFs'; else empty
  std::vector<Segment> segments = {};      ///< at least one
  bool are_ends_divided = false;           ///< each shard has its own part of rx, tx and packet memory

  /// Whether packets take several branches somewhere.
  bool has_classifiers() const { return has_branches(tables); }
  /// Of the segment with most shards.
  std::uint32_t shards() const;
  /// Packet pools: one, or one for each shard.
  std::uint32_t pools() const { return are_ends_divided ? shards() : 1; }
  /// Queues of each pool.
  std::uint32_t queues_of_pool() const;
  /// Maximum number of parts of a unit.
  std::uint32_t parts_of_pool() const;
  /// The queues of a shard of segment number `segment`.
  Topology topology_of(std::size_t segment) const;
};

/// Whether the ports of the chain divide packets into `parts` by themselves. Errors: of the ports.
using PortsDivide = std::function<Result<bool>(std::uint32_t parts)>;

/// Decides the path of packets. `chain`: with its layout. `nfs`: all of the chain, in its order, as of one shard.
/// Without `ports_divide` live ports do not. Each shard has its own ends if there is one segment, the order of packets
/// of different shards is invisible, and rx is artificial traffic, or ports divide packets: then all NFs must
/// accept shards by packet, since ports do not relate packets to a flow, for instance an ICMP error to the flow in its
/// quote. Errors: as next_node_tables(); as `ports_divide`; InvalidArgument for `flow: vanilla` in several shards with
/// the same ends.
Result<DataPath> data_path_of(ChainConfig const& chain, RunOptions const& options, std::span<nf::Instance* const> nfs,
                              PortsDivide const& ports_divide = nullptr);

/// "2: fw by flow, ids in one", with ", each with its part of rx and a tx of its own". `chain`: of the path.
std::string describe(DataPath const& path, ChainConfig const& chain);
/// {"segments": [{"nfs": ["fw"], "shards": 2, "divided_by": "flow"}], "ends": 1}. `divided_by`: "flow", or the NF with
/// the sharder; absent with one shard.
nlohmann::ordered_json to_json(DataPath const& path, ChainConfig const& chain);

}  // namespace catena::chain
