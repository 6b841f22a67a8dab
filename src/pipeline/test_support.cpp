// SPDX-License-Identifier: Apache-2.0
#include "pipeline/test_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace catena::runtime::testing {

chain::ChainConfig config_of(std::string const& rx, std::string const& tx) {
  Result<chain::ChainConfig> config =
      chain::parse_chain("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: test}\nspec:\n  rx: " + rx +
                             "\n  tx: " + tx + "\n  nfs: []\n",
                         "chain.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

chain::NfConfig nf_config_of(std::string const& name, std::string_view type) {
  const std::string file = name + ".yaml";
  return {name,         std::string(type),    plan::Processor::kCpu,
          std::nullopt, nf::LinkLocal::kPass, nf::Config::parse("{}", file).value(),
          file + ":1:1"};
}

Status OnePacketSource::receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index,
                                bool& starved) {
  starved = !pool.acquire_slots(unit, 1);
  if (!starved) {
    pool.set_arrived(unit.slots()[0], 60, next_index++, 0);
    unit.count = 1;
  }
  return absl::OkStatus();
}

NfEntry entry_of(std::string const& name, nf::Descriptor const& descriptor, std::unique_ptr<nf::Nf> nf) {
  return {nf_config_of(name, descriptor.type),
          std::make_unique<nf::Instance>(name, descriptor, std::move(nf), nf::OnUnsupported::kPass, false)};
}

chain::DataPath path_of(std::vector<Segment> const& segments, bool are_ends_divided) {
  chain::DataPath path{.are_ends_divided = are_ends_divided};
  std::ranges::transform(segments, std::back_inserter(path.segments), &Segment::part);
  return path;
}

Segment segment_of(std::size_t first, std::vector<std::vector<NfEntry>> shards) {
  const std::size_t nfs = shards.front().size();
  Segment segment{{first, first + nfs, static_cast<std::uint32_t>(shards.size()), {}}, chain::Topology(nfs)};
  segment.shards.resize(shards.size());
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    segment.shards[shard].nfs = std::move(shards[shard]);
  }
  return segment;
}

}  // namespace catena::runtime::testing
