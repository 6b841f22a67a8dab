// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.hpp"

#include "io/sink.hpp"
#include "io/source.hpp"
#include "pipeline/test_support.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using ::testing::ElementsAre;
using testing::entry_of;
using testing::segment_of;

std::vector<NfEntry> entries_of(std::vector<std::string> const& names) {
  std::vector<NfEntry> entries;
  for (std::string const& name : names) {
    entries.push_back(entry_of(name));
  }
  return entries;
}

/// NFs a and b in two shards, and c in one.
Pipeline abc() {
  std::vector<Segment> segments;
  std::vector<std::vector<NfEntry>> shards;
  shards.push_back(entries_of({"a", "b"}));
  shards.push_back(entries_of({"a", "b"}));
  segments.push_back(segment_of(0, std::move(shards)));
  shards.clear();
  shards.push_back(entries_of({"c"}));
  segments.push_back(segment_of(2, std::move(shards)));
  return {{}, std::move(segments), 7};
}

TEST(Pipeline, nfs_are_numbered_across_segments) {
  const Pipeline pipeline = abc();
  ASSERT_EQ(pipeline.entries().size(), 3U);
  EXPECT_EQ(pipeline.entries()[0].size(), 2U);
  EXPECT_EQ(pipeline.entries()[2].size(), 1U);
  EXPECT_EQ(pipeline.first_of(1).config.name, "b");
  EXPECT_EQ(pipeline.first_instances()[2]->name(), "c");
  std::vector<std::string> visited;
  pipeline.for_each_entry(
      [&visited](std::size_t shard, NfEntry const& entry) { visited.push_back(concat(entry.config.name, shard)); });
  EXPECT_THAT(visited, ElementsAre("a0", "b0", "a1", "b1", "c0"));
  EXPECT_THAT(pipeline.counted_parts().names, ElementsAre("a", "b", "c"));
  EXPECT_EQ(pipeline.counted_parts().nfs.size(), 5U);
}

TEST(Pipeline, an_nf_may_select_the_shards_of_its_segment) {
  Pipeline pipeline = abc();
  EXPECT_FALSE(pipeline.is_divided_by_nf());
  pipeline.segments()[0].part.divided_by = 1;
  EXPECT_TRUE(pipeline.is_divided_by_nf());
}

TEST(Pipeline, is_the_same_after_a_move) {
  Pipeline first = abc();
  NfEntry const* const b = &first.first_of(1);
  const Pipeline second = std::move(first);
  EXPECT_EQ(&second.first_of(1), b);
}

constexpr std::uint64_t kPacketsOfShard = 1000;

/// Two shards with a source and a sink each.
class PipelineRunTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kShards = 2;

  PipelineRunTest() {
    std::vector<std::vector<NfEntry>> shards;
    for (std::size_t shard = 0; shard < kShards; ++shard) {
      shards.push_back(entries_of({"a"}));
    }
    std::vector<Segment> segments;
    segments.push_back(segment_of(0, std::move(shards)));
    pipeline_ = Pipeline({}, std::move(segments), 7);
    Segment& segment = pipeline_.segments().front();
    for (std::size_t shard = 0; shard < kShards; ++shard) {
      pools_.push_back(memory::PacketPool::create(1024, 64, segment.topology.queues()).value());
      for (std::uint32_t queue = 0; queue < segment.topology.queues(); ++queue) {
        segment.shards[shard].queues.emplace_back(pools_[shard]->arena(), queue);
      }
      io::GeneratorConfig config;
      config.packet_bytes = 64;
      config.count = kPacketsOfShard;
      sources_.push_back(io::make_generator(config).value());
      sinks_.push_back(io::make_null_sink());
    }
  }
  /// The stages; `last` comes in place of those of the NF in the last shard.
  void add_stages(std::unique_ptr<PacketStage> last = nullptr) {
    Segment& segment = pipeline_.segments().front();
    for (std::size_t i = 0; i < kShards; ++i) {
      pipeline_.add_rx(std::make_unique<RxStage>(*sources_[i], *pools_[i], segment.shards[i].queues[0], stop_));
    }
    for (std::size_t i = 0; i < kShards; ++i) {
      Shard& shard = segment.shards[i];
      std::unique_ptr<PacketStage> stage =
          std::make_unique<CpuStage>(*shard.nfs[0].instance, 0, *pools_[i], shard.queues[0], shard.queues[1]);
      pipeline_.add_nf(shard.nfs[0], i + 1 == kShards && last != nullptr ? std::move(last) : std::move(stage));
    }
    for (std::size_t i = 0; i < kShards; ++i) {
      pipeline_.add_tx(std::make_unique<TxStage>(*sinks_[i], *pools_[i], segment.shards[i].queues[1]));
    }
    pipeline_.group_by_shard();
  }

  std::vector<std::shared_ptr<memory::PacketPool>> pools_;
  std::vector<std::unique_ptr<io::Source>> sources_;
  std::vector<std::unique_ptr<io::Sink>> sinks_;
  std::atomic<bool> stop_{false};
  Pipeline pipeline_;
};

TEST_F(PipelineRunTest, all_packets_leave_whatever_the_number_of_workers) {
  add_stages();
  EXPECT_EQ(pipeline_.run(3, {}, stop_), absl::OkStatus());
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    EXPECT_EQ(sinks_[shard]->sent(), kPacketsOfShard) << shard;
    EXPECT_EQ(pipeline_.entries()[0][shard]->stage->packets(), kPacketsOfShard) << shard;
    EXPECT_EQ(pipeline_.rx()[shard]->packets(), kPacketsOfShard) << shard;
  }
  EXPECT_EQ(pipeline_.waiting_units(0), 0U);
  EXPECT_FALSE(stop_.load());
}

TEST_F(PipelineRunTest, one_worker_polls_all_shards) {
  add_stages();
  EXPECT_EQ(pipeline_.run(1, {}, stop_), absl::OkStatus());
  EXPECT_EQ(sinks_[0]->sent() + sinks_[1]->sent(), kShards * kPacketsOfShard);
}

class FailingStage final : public HostStage {
 public:
  FailingStage() : HostStage("failing") {}
  Result<Progress> poll() override { return absl::DataLossError("disk full"); }
};

TEST_F(PipelineRunTest, an_error_of_one_group_stops_the_others) {
  add_stages(std::make_unique<FailingStage>());
  EXPECT_EQ(pipeline_.run(2, {}, stop_), absl::DataLossError("stage failing: disk full"));
  EXPECT_TRUE(stop_.load());
}

TEST_F(PipelineRunTest, flow_control_gets_the_rings_of_each_shard) {
  add_stages();
  chain::ChainConfig config = testing::config_of("{generator: {}}", "null");
  config.nfs.push_back(testing::nf_config_of("a"));
  const FlowPaths paths = pipeline_.flow_paths(config);
  EXPECT_TRUE(paths.has_own_ends);
  ASSERT_EQ(paths.nfs.size(), 1U);
  EXPECT_EQ(paths.nfs[0].name, "a");
  ASSERT_EQ(paths.nfs[0].shards.size(), kShards);
  Shard& last = pipeline_.segments()[0].shards[1];
  EXPECT_EQ(paths.nfs[0].shards[1].in, &last.queues[0]);
  EXPECT_EQ(paths.nfs[0].shards[1].last, &last.queues[1]);
  EXPECT_EQ(paths.nfs[0].shards[1].stage, last.nfs[0].stage);
  ASSERT_EQ(paths.rx.size(), kShards);
  EXPECT_FALSE(paths.rx[0].is_live);
}

}  // namespace
}  // namespace catena::runtime
