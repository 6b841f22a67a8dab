// SPDX-License-Identifier: Apache-2.0
#include "chain/data_path.hpp"

#include "chain/instances.hpp"
#include "chain/port_kind.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace catena::chain {
namespace {

Result<bool> may_divide_ends(ChainConfig const& chain, RunOptions const& options, std::span<nf::Instance* const> nfs,
                             std::uint32_t shards, PortsDivide const& ports_divide) {
  if (chain.rx.is_shared || chain.tx.is_shared) {
    return false;
  }
  const bool is_by_packet = std::ranges::all_of(
      nfs, [](nf::Instance const* nf) { return nf->descriptor().sharding == nf::Sharding::kPacket; });
  if (chain.rx.kind->is_live && is_by_packet && hides_order(chain, options)) {
    return ports_divide != nullptr ? ports_divide(shards) : false;
  }
  return may_divide_traffic(chain, options);
}

std::vector<std::string> names_in(Segment const& segment, ChainConfig const& chain) {
  std::vector<std::string> names;
  for (std::size_t nf = segment.first; nf < segment.end; ++nf) {
    names.push_back(chain.nfs[nf].name);
  }
  return names;
}

}  // namespace

std::uint32_t DataPath::shards() const { return std::ranges::max_element(segments, {}, &Segment::shards)->shards; }

std::uint32_t DataPath::queues_of_pool() const {
  std::uint32_t queues = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    queues += segments[i].shards * topology_of(i).queues();
  }
  return queues / pools();
}

std::uint32_t DataPath::parts_of_pool() const {
  std::uint32_t parts = 1;
  for (NextNodeTable const& table : tables) {
    parts += static_cast<std::uint32_t>(table.targets().size());
  }
  return (has_classifiers() ? parts : 1) * shards() / pools();
}

Topology DataPath::topology_of(std::size_t segment) const {
  return tables.empty() ? Topology(segments[segment].end - segments[segment].first) : Topology(tables);
}

Result<DataPath> data_path_of(ChainConfig const& chain, RunOptions const& options, std::span<nf::Instance* const> nfs,
                              PortsDivide const& ports_divide) {
  DataPath path;
  CATENA_ASSIGN_OR_RETURN(path.tables, next_node_tables(chain, nfs));
  path.segments = segments_of(chain, nfs);
  const std::uint32_t shards = path.shards();
  if (shards > 1 && path.segments.size() == 1) {
    CATENA_ASSIGN_OR_RETURN(path.are_ends_divided, may_divide_ends(chain, options, nfs, shards, ports_divide));
  }
  if (chain.flow.mode == FlowMode::kVanilla && shards > 1 && !path.are_ends_divided) {
    return absl::InvalidArgumentError(concat(chain.flow.position,
                                             ": 'flow' is vanilla, which is for comparisons and runs in one shard; "
                                             "write `shards: 1`"));
  }
  return path;
}

std::string describe(DataPath const& path, ChainConfig const& chain) {
  std::vector<std::string> parts;
  for (Segment const& segment : path.segments) {
    const std::string how = segment.shards == 1  ? "in one"
                            : segment.divided_by ? concat("as ", chain.nfs[*segment.divided_by].name, " says")
                                                 : "by flow";
    parts.push_back(fmt::format("{} {}", fmt::join(names_in(segment, chain), " and "), how));
  }
  return fmt::format("{}: {}{}", path.shards(), fmt::join(parts, ", "),
                     path.are_ends_divided ? ", each with its part of rx and a tx of its own" : "");
}

nlohmann::ordered_json to_json(DataPath const& path, ChainConfig const& chain) {
  nlohmann::ordered_json json{{"segments", nlohmann::ordered_json::array()}, {"ends", path.pools()}};
  for (Segment const& segment : path.segments) {
    nlohmann::ordered_json part{{"nfs", names_in(segment, chain)}, {"shards", segment.shards}};
    if (segment.shards > 1) {
      part["divided_by"] = segment.divided_by ? chain.nfs[*segment.divided_by].name : "flow";
    }
    json["segments"].push_back(std::move(part));
  }
  return json;
}

}  // namespace catena::chain
