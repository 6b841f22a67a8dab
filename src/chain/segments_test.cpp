// SPDX-License-Identifier: Apache-2.0
#include "chain/segments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace catena::chain {
namespace {

using nf::Sharding;
using packet::fields;
using packet::FieldSet;
using ::testing::ElementsAre;

constexpr nf::Descriptor descriptor_of(Sharding sharding) {
  return {.type = "stub", .help = "", .drop_reasons = {}, .config = {}, .sharding = sharding};
}
constexpr std::array kDescriptors{descriptor_of(Sharding::kNone), descriptor_of(Sharding::kPacket),
                                  descriptor_of(Sharding::kFlow), descriptor_of(Sharding::kOwn)};

class Stub final : public nf::Nf {
 public:
  Stub(FieldSet reads, FieldSet writes) : reads_(reads), writes_(writes) {}
  nf::Hints hints() const override {
    nf::Hints hints;
    hints.prepare_reads = reads_;
    hints.cw = hints.gw = writes_;
    return hints;
  }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {}

 private:
  FieldSet reads_;
  FieldSet writes_;
};

/// The segments of NFs that are divided so, each of which may read and write some fields.
class Chain {
 public:
  Chain& then(Sharding sharding, FieldSet reads = 0, FieldSet writes = 0) {
    nfs_.push_back(std::make_unique<nf::Instance>("nf", kDescriptors.at(static_cast<std::size_t>(sharding)),
                                                  std::make_unique<Stub>(reads, writes), nf::OnUnsupported::kPass,
                                                  false));
    return *this;
  }
  std::vector<Segment> in(std::uint32_t shards, bool is_graph = false) const {
    std::vector<nf::Instance*> nfs;
    for (auto const& nf : nfs_) {
      nfs.push_back(nf.get());
    }
    ChainConfig chain;
    chain.shards = shards;
    if (is_graph) {
      chain.graph.emplace();
    }
    return segments_of(chain, nfs);
  }

 private:
  std::vector<std::unique_ptr<nf::Instance>> nfs_;
};

Segment by_flow(std::size_t first, std::size_t end) { return {first, end, 3, std::nullopt}; }
Segment in_one(std::size_t first, std::size_t end) { return {first, end, 1, std::nullopt}; }
Segment by(std::size_t nf, std::size_t first, std::size_t end) { return {first, end, 3, nf}; }

TEST(Segments, a_chain_in_one_shard_is_one_whatever_its_nfs_want) {
  EXPECT_THAT(Chain().then(Sharding::kNone).then(Sharding::kFlow).then(Sharding::kOwn).in(1),
              ElementsAre(in_one(0, 3)));
  EXPECT_THAT(Chain().in(3), ElementsAre(in_one(0, 0)));
}

TEST(Segments, nfs_that_agree_stay_together) {
  EXPECT_THAT(Chain().then(Sharding::kPacket).then(Sharding::kFlow).then(Sharding::kPacket).then(Sharding::kFlow).in(3),
              ElementsAre(by_flow(0, 4)));
}

TEST(Segments, one_that_sees_all_packets_is_a_section_of_one_shard) {
  EXPECT_THAT(Chain().then(Sharding::kFlow).then(Sharding::kNone).then(Sharding::kNone).then(Sharding::kPacket).in(3),
              ElementsAre(by_flow(0, 1), in_one(1, 3), by_flow(3, 4)));
}

TEST(Segments, one_with_a_sharder_of_its_own_begins_a_segment_after_those_that_go_by_flow) {
  EXPECT_THAT(Chain().then(Sharding::kFlow).then(Sharding::kOwn).then(Sharding::kPacket).then(Sharding::kFlow).in(3),
              ElementsAre(by_flow(0, 1), by(1, 1, 3), by_flow(3, 4)));
  EXPECT_THAT(Chain().then(Sharding::kOwn).then(Sharding::kOwn).in(3), ElementsAre(by(0, 0, 1), by(1, 1, 2)))
      << "two never agree";
}

TEST(Segments, its_sharder_is_asked_at_rx_where_upstream_nfs_leave_alone_what_it_reads) {
  const FieldSet ports = fields(packet::kL4Sport);
  EXPECT_THAT(Chain().then(Sharding::kPacket, 0, fields(packet::kIpv4Ttl)).then(Sharding::kOwn, ports).in(3),
              ElementsAre(by(1, 0, 2)));
  EXPECT_THAT(Chain().then(Sharding::kPacket, 0, ports).then(Sharding::kOwn, ports).in(3),
              ElementsAre(by_flow(0, 1), by(1, 1, 2)));
  EXPECT_THAT(Chain().then(Sharding::kNone).then(Sharding::kPacket).then(Sharding::kOwn, ports).in(3),
              ElementsAre(in_one(0, 1), by_flow(1, 2), by(2, 2, 3)))
      << "elsewhere not all of a packet may be on the host yet";
}

TEST(Segments, a_graph_is_one) {
  EXPECT_THAT(Chain().then(Sharding::kPacket).then(Sharding::kFlow).in(3, true), ElementsAre(by_flow(0, 2)));
  EXPECT_THAT(Chain().then(Sharding::kPacket).then(Sharding::kNone).in(3, true), ElementsAre(in_one(0, 2)));
  EXPECT_THAT(Chain().then(Sharding::kOwn).in(3, true), ElementsAre(in_one(0, 1)));
}

}  // namespace
}  // namespace catena::chain
