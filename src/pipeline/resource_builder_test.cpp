// SPDX-License-Identifier: Apache-2.0
#include "pipeline/resource_builder.hpp"

#include "pipeline/test_support.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

/// A chain of NFs a and b, each in as many shards.
class ResourceBuilderTest : public ::testing::Test {
 protected:
  void make_nfs(std::uint32_t shards, bool are_ends_divided = false) {
    config_ = testing::config_of("{generator: {count: 10}}", "null");
    config_.shards = shards;
    std::vector<std::vector<NfEntry>> entries(shards);
    for (const char* name : {"a", "b"}) {
      config_.nfs.push_back(testing::nf_config_of(name));
      for (std::vector<NfEntry>& shard : entries) {
        shard.push_back(testing::entry_of(name));
      }
    }
    std::vector<Segment> segments;
    segments.push_back(testing::segment_of(0, std::move(entries)));
    chain::DataPath path = testing::path_of(segments, are_ends_divided);
    pipeline_ = Pipeline(std::move(path), std::move(segments), 7);
  }
  Result<std::vector<chain::FlowLimits>> make_pools(TakeoverParts const* before = nullptr) {
    return ResourceBuilder(config_, options_, pipeline_, ends_, devices_, before).make_pools();
  }
  std::size_t queues(std::size_t shard) const { return pipeline_.segments()[0].shards[shard].queues.size(); }

  chain::ChainConfig config_;
  RunOptions options_;
  Ends ends_;
  Pipeline pipeline_;
  DeviceManager devices_{nullptr};
};

TEST_F(ResourceBuilderTest, each_nf_has_a_ring_and_so_has_tx) {
  make_nfs(1);
  const auto limits = make_pools();
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(ends_.pools().size(), 1U);
  EXPECT_EQ(ends_.slots(), config_.tuning.pool_slots);
  EXPECT_EQ(queues(0), 3U);
  EXPECT_EQ(limits->size(), config_.flow.mode == chain::FlowMode::kPool ? 0U : 2U);
}

TEST_F(ResourceBuilderTest, shards_with_ends_of_their_own_have_pools_of_their_own) {
  make_nfs(2, true);
  ASSERT_TRUE(make_pools().ok());
  EXPECT_EQ(ends_.pools().size(), 2U);
  EXPECT_EQ(queues(1), 3U);
}

TEST_F(ResourceBuilderTest, shards_share_a_pool_if_they_share_the_ends) {
  make_nfs(2);
  ASSERT_TRUE(make_pools().ok());
  EXPECT_EQ(ends_.pools().size(), 1U);
  EXPECT_EQ(queues(1), 3U);
}

TEST_F(ResourceBuilderTest, pools_of_another_process_are_taken_as_they_are) {
  make_nfs(1);
  std::uint32_t queues = 0;
  options_.make_pool = [&queues](std::uint32_t wanted) -> Result<std::shared_ptr<memory::PacketPool>> {
    queues = wanted;
    CATENA_ASSIGN_OR_RETURN(auto pool, memory::PacketPool::create(1024, 64, wanted));
    return std::shared_ptr<memory::PacketPool>(std::move(pool));
  };
  ASSERT_TRUE(make_pools().ok());
  EXPECT_EQ(queues, 3U);
  EXPECT_EQ(ends_.slots(), 1024U);
}

TEST_F(ResourceBuilderTest, a_chain_that_replaces_another_has_its_slots) {
  make_nfs(1);
  ASSERT_TRUE(make_pools().ok());
  chain::ChainConfig running = config_;
  RunEnd end;
  const TakeoverParts before{&running, &pipeline_, &ends_, &devices_, &end};

  const auto make_next = [&](std::uint32_t slots, std::uint32_t says) {
    chain::ChainConfig config = running;
    config.tuning.pool_slots = slots;
    Ends ends;
    std::vector<std::vector<NfEntry>> entries(1);
    entries[0].push_back(testing::entry_of("a"));
    entries[0].push_back(testing::entry_of("b"));
    std::vector<Segment> segments;
    segments.push_back(testing::segment_of(0, std::move(entries)));
    chain::DataPath path = testing::path_of(segments, false);
    Pipeline next(std::move(path), std::move(segments), 7);
    const Status status = ResourceBuilder(config, options_, next, ends, devices_, &before).make_pools().status();
    EXPECT_TRUE(!status.ok() || ends.slots() == says) << ends.slots();
    return status;
  };
  const std::uint32_t there = running.tuning.pool_slots;
  EXPECT_EQ(make_next(there / 2, there), absl::OkStatus());
}

}  // namespace
}  // namespace catena::runtime
