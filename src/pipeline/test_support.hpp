// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "io/source.hpp"
#include "pipeline/pipeline.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace catena::runtime::testing {

/// A chain without NFs; the calling test fails if it is invalid.
chain::ChainConfig config_of(std::string const& rx, std::string const& tx);

/// Has one packet at each call, without an end.
class OnePacketSource final : public io::Source {
 public:
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override;
  bool finished() const override { return false; }
  io::SourceCounts counts() const override { return {}; }
  std::string describe() const override { return "one packet"; }
};

/// Passes all packets.
class IdleNf : public nf::Nf {
 public:
  nf::Hints hints() const override { return {}; }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {}
};
inline constexpr nf::Descriptor kIdle{
    .type = "idle", .help = "", .drop_reasons = {}, .config = {}, .sharding = nf::Sharding::kFlow};

/// The entry of an NF without keys, at "NAME.yaml:1:1".
chain::NfConfig nf_config_of(std::string const& name, std::string_view type = "idle");

/// An NF with this name and the type of `descriptor`, which outlives it.
NfEntry entry_of(std::string const& name, nf::Descriptor const& descriptor = kIdle,
                 std::unique_ptr<nf::Nf> nf = std::make_unique<IdleNf>());

/// The path through `segments`, not of a graph.
chain::DataPath path_of(std::vector<Segment> const& segments, bool are_ends_divided);

/// NFs in a row, from number `first` of their chain on. Without queues.
Segment segment_of(std::size_t first, std::vector<std::vector<NfEntry>> shards);

}  // namespace catena::runtime::testing
