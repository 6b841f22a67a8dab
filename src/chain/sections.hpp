// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/instance.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace catena::chain {

/// NFs next to each other whose packets are divided in the same way, among as many shards.
struct Section {
  std::size_t first = 0;  ///< number of its first NF
  std::size_t end = 0;    ///< of the one behind its last
  std::uint32_t shards = 1;
  std::optional<std::size_t> divided_by;  ///< the NF whose divider says which shard; none: the flow, or there is one

  friend bool operator==(Section const&, Section const&) = default;
};

/// How a chain runs in `shards`: as few sections as its NFs allow, since packets change hands between two of them. One
/// NF that has to see all packets is a section of one shard, those in front of it and behind it are divided. A chain
/// without NFs is one section. Pure.
std::vector<Section> sections_of(std::span<nf::Instance* const> nfs, std::uint32_t shards);

/// How a graph runs in `shards`: as one section, of several shards where each NF decides each packet or each flow by
/// itself, else of one. Pure.
Section section_of_graph(std::span<nf::Instance* const> nfs, std::uint32_t shards);

}  // namespace catena::chain
