// SPDX-License-Identifier: Apache-2.0
#include "pipeline/stage_builder.hpp"

#include "pipeline/resource_builder.hpp"
#include "pipeline/test_support.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kBuilderPackets = 1000;

/// The NFs of a segment, in as many shards.
struct RowOfNfs {
  std::vector<std::string> names;
  std::size_t shards = 1;
};

class StageBuilderTest : public ::testing::Test {
 protected:
  /// Makes all of a chain up to its stages.
  Status build(std::vector<RowOfNfs> const& rows, std::string const& tx = "null") {
    config_ = testing::config_of(concat("{generator: {count: ", kBuilderPackets, ", flows: 8}}"), tx);
    std::vector<Segment> segments;
    for (RowOfNfs const& row : rows) {
      const std::size_t first = config_.nfs.size();
      std::vector<std::vector<NfEntry>> shards(row.shards);
      for (std::string const& name : row.names) {
        config_.nfs.push_back(testing::nf_config_of(name));
        for (std::vector<NfEntry>& shard : shards) {
          shard.push_back(testing::entry_of(name));
        }
      }
      config_.shards = std::max(config_.shards, static_cast<std::uint32_t>(row.shards));
      segments.push_back(testing::segment_of(first, std::move(shards)));
    }
    const bool are_ends_divided = rows.size() == 1 && rows.front().shards > 1;
    chain::DataPath path = testing::path_of(segments, are_ends_divided);
    pipeline_ = Pipeline(std::move(path), std::move(segments), 7);
    ResourceBuilder resources(config_, options_, pipeline_, ends_, devices_, nullptr);
    CATENA_ASSIGN_OR_RETURN(std::vector<chain::FlowLimits> limits, resources.make_pools());
    flow_.emplace(std::move(limits));
    CATENA_RETURN_IF_ERROR(ends_.open_ports(config_, options_, pipeline_.shard_map_of(pipeline_.segments().front())));
    StageBuilder stages({.chain = config_,
                         .options = options_,
                         .pipeline = pipeline_,
                         .ends = ends_,
                         .devices = devices_,
                         .flow = *flow_,
                         .telemetry = telemetry_,
                         .stop = stop_});
    return stages.make_all(nullptr, {});
  }
  std::uint64_t run() {
    ends_.start();
    EXPECT_EQ(pipeline_.run(2, {}, stop_), absl::OkStatus());
    ends_.stop();
    EXPECT_EQ(ends_.finish({}, false), absl::OkStatus());
    std::uint64_t sent = 0;
    for (auto const& sink : ends_.sinks()) {
      sent += sink->counts().sent;
    }
    return sent;
  }
  std::vector<std::string> stages() const {
    std::vector<std::string> names;
    for (StageTrace const& trace : telemetry_.traces()) {
      names.push_back(trace.name);
    }
    return names;
  }

  ScratchFolder folder_;
  std::string out_ = concat("{pcap: ", folder_.path("out.pcap"), "}");
  chain::ChainConfig config_;
  RunOptions options_;
  std::atomic<bool> stop_{false};
  Ends ends_;
  DeviceManager devices_{nullptr};
  std::optional<FlowControl> flow_;
  Telemetry telemetry_{true};
  Pipeline pipeline_;
};

TEST_F(StageBuilderTest, nfs_in_a_row_have_a_stage_each) {
  ASSERT_EQ(build({{{"a", "b"}}}), absl::OkStatus());
  EXPECT_THAT(stages(), ElementsAre("rx", "a", "b", "tx"));
  EXPECT_EQ(run(), kBuilderPackets);
  EXPECT_EQ(pipeline_.first_of(1).instance->counters().in, kBuilderPackets);
}

TEST_F(StageBuilderTest, a_chain_without_nfs_is_rx_and_tx) {
  ASSERT_EQ(build({{{}}}), absl::OkStatus());
  EXPECT_THAT(stages(), ElementsAre("rx", "tx"));
  EXPECT_EQ(run(), kBuilderPackets);
}

TEST_F(StageBuilderTest, shards_with_ports_of_their_own_have_nothing_in_common) {
  ASSERT_EQ(build({{{"a"}, 2}}), absl::OkStatus());
  EXPECT_THAT(stages(), ElementsAre("rx/0", "rx/1", "a/0", "a/1", "tx/0", "tx/1"));
  EXPECT_EQ(pipeline_.rx().size(), 2U);
  EXPECT_EQ(run(), kBuilderPackets);
}

TEST_F(StageBuilderTest, packets_are_divided_again_between_segments) {
  ASSERT_EQ(build({{{"a"}, 2}, {{"b"}}, {{"c"}, 3}}, out_), absl::OkStatus());
  EXPECT_THAT(stages(), ElementsAre("rx", "a/0", "a/1", "reshard", "b", "reshard", "c/0", "c/1", "c/2", "tx"));
  EXPECT_EQ(run(), kBuilderPackets);
  EXPECT_EQ(pipeline_.first_of(1).instance->counters().in, kBuilderPackets) << "of all shards";
  EXPECT_LT(pipeline_.first_of(2).instance->counters().in, kBuilderPackets);
}

TEST_F(StageBuilderTest, an_output_that_cannot_be_opened_is_an_error) {
  EXPECT_FALSE(build({{{"a"}}}, concat("{pcap: ", folder_.path("missing/out.pcap"), "}")).ok());
}

}  // namespace
}  // namespace catena::runtime
