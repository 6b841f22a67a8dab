// SPDX-License-Identifier: Apache-2.0
#include "chain/data_path.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace catena::chain {
namespace {

using nf::Sharding;
using ::testing::HasSubstr;

constexpr nf::Descriptor path_descriptor(Sharding sharding) {
  return {.type = "stub", .help = "", .drop_reasons = {}, .config = {}, .sharding = sharding};
}
constexpr std::array kPathDescriptors{path_descriptor(Sharding::kNone), path_descriptor(Sharding::kPacket),
                                      path_descriptor(Sharding::kFlow), path_descriptor(Sharding::kOwn)};

class PathStub final : public nf::Nf {
 public:
  nf::Hints hints() const override { return {}; }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {}
};

constexpr const char* kArtificial = "{generator: {}}";
constexpr const char* kLive = "{dpdk: net_null0}";
constexpr const char* kIntoFile = "{pcap: out.pcap}";

/// A chain of NFs a, b, .. which are divided so.
class DataPathTest : public ::testing::Test {
 protected:
  void make(std::uint32_t shards, std::vector<Sharding> const& nfs, std::string const& rx = kArtificial,
            std::string const& tx = "null", std::string const& more = {}) {
    std::string text = concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: test}\nspec:\n  rx: ", rx,
                              "\n  tx: ", tx, "\n  shards: ", shards, "\n", more, "  nfs:\n");
    for (const Sharding sharding : nfs) {
      const std::string name(1, static_cast<char>('a' + nfs_.size()));
      text += concat("    - {name: ", name, ", type: firewall}\n");
      instances_.push_back(std::make_unique<nf::Instance>(name, kPathDescriptors.at(static_cast<std::size_t>(sharding)),
                                                          std::make_unique<PathStub>(), nf::OnUnsupported::kPass,
                                                          false));
      nfs_.push_back(instances_.back().get());
    }
    Result<ChainConfig> chain = parse_chain(text, "chain.yaml");
    ASSERT_TRUE(chain.ok()) << chain.status();
    chain_ = *std::move(chain);
  }
  Result<DataPath> decide(PortsDivide const& ports = nullptr) const { return data_path_of(chain_, {}, nfs_, ports); }
  bool divides_ends(PortsDivide const& ports = nullptr) const {
    const Result<DataPath> path = decide(ports);
    EXPECT_TRUE(path.ok()) << path.status();
    return path.ok() && path->are_ends_divided;
  }

  std::vector<std::unique_ptr<nf::Instance>> instances_;
  std::vector<nf::Instance*> nfs_;
  ChainConfig chain_;
};

TEST_F(DataPathTest, shards_of_artificial_traffic_have_their_own_ends_if_no_order_is_visible) {
  make(2, {Sharding::kFlow});
  EXPECT_TRUE(divides_ends());
}

TEST_F(DataPathTest, a_file_has_the_order_of_all_packets) {
  make(2, {Sharding::kFlow}, kArtificial, kIntoFile);
  EXPECT_FALSE(divides_ends());
}

TEST_F(DataPathTest, one_shard_has_nothing_to_divide) {
  make(1, {Sharding::kFlow});
  EXPECT_FALSE(divides_ends());
}

TEST_F(DataPathTest, several_segments_meet_in_between) {
  make(2, {Sharding::kFlow, Sharding::kNone});
  EXPECT_FALSE(divides_ends());
}

TEST_F(DataPathTest, ports_that_divide_packets_do_so_for_nfs_that_go_by_packet) {
  const auto yes = [](std::uint32_t parts) -> Result<bool> { return parts == 2; };
  make(2, {Sharding::kPacket}, kLive);
  EXPECT_TRUE(divides_ends(yes));
  EXPECT_FALSE(divides_ends([](std::uint32_t /*parts*/) -> Result<bool> { return false; }));
  EXPECT_FALSE(divides_ends()) << "nobody asks the ports";
  EXPECT_EQ(
      decide([](std::uint32_t /*parts*/) -> Result<bool> { return absl::NotFoundError("no port"); }).status().message(),
      "no port");
}

TEST_F(DataPathTest, ports_know_no_flows) {
  make(2, {Sharding::kFlow}, kLive);
  EXPECT_FALSE(divides_ends([](std::uint32_t /*parts*/) -> Result<bool> { return true; }));
}

TEST_F(DataPathTest, vanilla_flow_is_for_one_shard) {
  make(2, {Sharding::kFlow}, kArtificial, kIntoFile, "  flow: {mode: vanilla}\n");
  const Status status = decide().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("'flow' is vanilla"));
}

TEST_F(DataPathTest, a_pool_has_the_queues_of_its_shards) {
  make(2, {Sharding::kFlow, Sharding::kPacket});
  const Result<DataPath> path = decide();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(path->pools(), 2U);
  EXPECT_EQ(path->queues_of_pool(), 3U) << "before each NF and before tx";
  EXPECT_EQ(path->parts_of_pool(), 1U);
}

TEST_F(DataPathTest, segments_with_one_pool_have_all_queues_in_it) {
  make(3, {Sharding::kFlow, Sharding::kNone}, kArtificial, kIntoFile);
  const Result<DataPath> path = decide();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(path->pools(), 1U);
  EXPECT_EQ(path->queues_of_pool(), 3U * 2 + 2);
  EXPECT_EQ(path->parts_of_pool(), 3U) << "a unit has packets of all shards";
  EXPECT_EQ(path->topology_of(1).queues(), 2U);
}

TEST_F(DataPathTest, people_and_programs_read_it) {
  make(3, {Sharding::kFlow, Sharding::kNone, Sharding::kOwn}, kArtificial, kIntoFile);
  const Result<DataPath> path = decide();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(describe(*path, chain_), "3: a by flow, b in one, c as c says");
  EXPECT_EQ(to_json(*path, chain_).dump(),
            R"({"segments":[{"nfs":["a"],"shards":3,"divided_by":"flow"},{"nfs":["b"],"shards":1},)"
            R"({"nfs":["c"],"shards":3,"divided_by":"c"}],"ends":1})");
}

TEST_F(DataPathTest, ends_of_their_own_are_described) {
  make(2, {Sharding::kPacket});
  const Result<DataPath> path = decide();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(describe(*path, chain_), "2: a by flow, each with its part of rx and a tx of its own");
  EXPECT_EQ(to_json(*path, chain_)["ends"], 2);
}

}  // namespace
}  // namespace catena::chain
