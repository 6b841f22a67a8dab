// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "nf/instance.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace catena::chain {

/// Consecutive NFs that divide packets in the same way into the same number of shards.
struct Segment {
  std::size_t first = 0;  ///< number of its first NF
  std::size_t end = 0;    ///< number of the NF after its last
  std::uint32_t shards = 1;
  std::optional<std::size_t> divided_by;  ///< the NF whose sharder selects the shard; nullopt: by flow, or one shard

  friend bool operator==(Segment const&, Segment const&) = default;
};

/// The segments of a chain with its layout. `nfs`: all of its NFs, in their order. Pure.
/// - A row of NFs: as few as they allow, since packets are resharded between segments. An NF that has to see all
/// packets
///   is in a segment of one shard, and the NFs before and after it are divided. A chain without NFs is one segment.
/// - A graph: one segment, of several shards if each NF processes each packet or each flow by itself.
std::vector<Segment> segments_of(ChainConfig const& chain, std::span<nf::Instance* const> nfs);

}  // namespace catena::chain
