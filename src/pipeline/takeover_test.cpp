// SPDX-License-Identifier: Apache-2.0
#include "pipeline/takeover.hpp"

#include "pipeline/test_support.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using ::testing::ElementsAre;
using testing::entry_of;
using testing::segment_of;
using namespace std::chrono_literals;

constexpr std::uint32_t kSharedSlots = 4096;
constexpr std::uint32_t kFullUnit = 64;

/// A full unit at each call, without an end.
class EndlessSource final : public io::Source {
 public:
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    starved = !pool.acquire_slots(unit, kFullUnit);
    for (; !starved && unit.count < kFullUnit; ++unit.count) {
      pool.set_arrived(unit.slots()[unit.count], 60, next_index++, 0);
    }
    return absl::OkStatus();
  }
  bool finished() const override { return false; }
  io::SourceCounts counts() const override { return {}; }
  std::string describe() const override { return "endless"; }
};

/// Keeps a number, or refuses that of others.
class NumberNf final : public testing::IdleNf {
 public:
  explicit NumberNf(int number, Status refusal = absl::OkStatus()) : number_(number), refusal_(std::move(refusal)) {}
  Status prepare_migration(std::span<nf::Nf const* const> /*before*/) override { return refusal_; }
  void migrate_state(std::span<nf::Nf* const> before, nf::FlowFilter const& /*is_mine*/) override {
    number_ = dynamic_cast<NumberNf&>(*before.front()).number_;
  }
  int number() const { return number_; }

 private:
  int number_;
  Status refusal_;
};
constexpr nf::Descriptor kNumber{
    .type = "number", .help = "", .drop_reasons = {}, .config = {}, .sharding = nf::Sharding::kFlow};
constexpr nf::Descriptor kPerPacket{
    .type = "stateless", .help = "", .drop_reasons = {}, .config = {}, .sharding = nf::Sharding::kPacket};

NfEntry number_of(std::string const& name, int number, Status refusal = absl::OkStatus()) {
  return entry_of(name, kNumber, std::make_unique<NumberNf>(number, std::move(refusal)));
}

/// A chain with its NFs in one segment, by shards.
class RunningChain {
 public:
  explicit RunningChain(std::vector<std::vector<NfEntry>> shards) {
    std::vector<Segment> segments;
    segments.push_back(segment_of(0, std::move(shards)));
    pipeline_ = Pipeline({}, std::move(segments), 7);
    options_.make_source = [] { return std::make_unique<EndlessSource>(); };
  }
  void open(RunningChain* before = nullptr) {
    Ends* const its = before == nullptr ? nullptr : &before->ends_;
    ASSERT_EQ(ends_.make_pools(1, {.slots = kSharedSlots, .unit_packets = kFullUnit, .queues = 1}, its),
              absl::OkStatus());
    ASSERT_EQ(ends_.open_ports(config_, options_, ShardMap(1, 0), its), absl::OkStatus());
    ASSERT_EQ(ends_.open_outputs(config_, options_, {}, {}, its), absl::OkStatus());
    Shard& shard = pipeline_.segments()[0].shards[0];
    shard.queues.emplace_back(ends_.pool_of(0).arena(), 0);
    pipeline_.add_rx(
        std::make_unique<RxStage>(*ends_.sources()[0], ends_.pool_of(0), shard.queues[0], end_.stop_flag()));
  }
  TakeoverParts parts() { return {&config_, &pipeline_, &ends_, &devices_, &end_}; }
  /// Its run, with nothing to do.
  void end(Status outcome, bool is_empty) {
    const bool is_passed_on = end_.decide();
    ends_.stop();
    EXPECT_EQ(ends_.finish({}, is_passed_on), absl::OkStatus());
    end_.finish(std::move(outcome), is_empty);
  }
  NfEntry const& entry(std::size_t number) const { return pipeline_.first_of(number); }
  int number(std::size_t nf) const { return dynamic_cast<NumberNf&>(pipeline_.first_of(nf).instance->nf()).number(); }
  Pipeline& pipeline() { return pipeline_; }
  RunEnd& run_end() { return end_; }

 private:
  chain::ChainConfig config_ = testing::config_of("{generator: {}}", "null");
  RunOptions options_;
  Ends ends_;
  Pipeline pipeline_;
  DeviceManager devices_{nullptr};
  RunEnd end_;
};

/// Of one shard.
template <typename... Entry>
std::vector<std::vector<NfEntry>> row_of(Entry... entries) {
  std::vector<std::vector<NfEntry>> shards(1);
  (shards[0].push_back(std::move(entries)), ...);
  return shards;
}

class TakeoverTest : public ::testing::Test {
 protected:
  static Status pair(RunningChain& before, RunningChain& next) {
    return Takeover(before.parts(), next.parts(), nullptr).pair(nf::RunContext());
  }
};

TEST_F(TakeoverTest, nfs_with_one_name_and_type_have_one_state) {
  RunningChain before(row_of(number_of("a", 7), number_of("b", 8)));
  RunningChain next(row_of(number_of("new", 1), number_of("b", 2), number_of("a", 3)));
  before.open();
  next.open(&before);
  const auto held = std::make_shared<int>(0);
  Takeover takeover(before.parts(), next.parts(), held);
  takeover.plan(RunOptions(), false);
  ASSERT_EQ(takeover.pair(nf::RunContext()), absl::OkStatus());
  EXPECT_FALSE(takeover.is_paired(*next.entry(0).instance));
  EXPECT_TRUE(takeover.is_paired(*next.entry(1).instance));
  EXPECT_TRUE(takeover.restarted().empty());
  ASSERT_EQ(takeover.start(), absl::OkStatus());
  EXPECT_TRUE(before.run_end().is_stopped());
  EXPECT_TRUE(before.run_end().is_migrated(*before.entry(1).instance)) << "it must not finish";
  before.end(absl::OkStatus(), true);
  SourcePauses pauses;
  takeover.wait(pauses);
  EXPECT_EQ(next.number(2), 3) << "the previous chain is empty, no more";
  EXPECT_TRUE(takeover.is_pending());
  EXPECT_EQ(takeover.finish(), absl::OkStatus());
  EXPECT_FALSE(takeover.is_pending());
  takeover.release().reset();
  EXPECT_EQ(held.use_count(), 1) << "the previous chain may go";
  EXPECT_EQ(next.number(0), 1);
  EXPECT_EQ(next.number(1), 8);
  EXPECT_EQ(next.number(2), 7);
}

TEST_F(TakeoverTest, an_nf_of_another_type_restarts_and_one_without_state_has_none_to_lose) {
  RunningChain before(row_of(number_of("a", 7), number_of("b", 8), number_of("c", 9)));
  RunningChain next(row_of(entry_of("a"), entry_of("b", kPerPacket), number_of("c", 1)));
  Takeover takeover(before.parts(), next.parts(), nullptr);
  ASSERT_EQ(takeover.pair(nf::RunContext()), absl::OkStatus());
  EXPECT_THAT(takeover.restarted(), ElementsAre("a"));
  EXPECT_FALSE(takeover.is_paired(*next.entry(1).instance));
  EXPECT_TRUE(takeover.is_paired(*next.entry(2).instance));
}

/// Keeps flows.
class FlowsNf final : public testing::IdleNf {
 public:
  explicit FlowsNf(std::vector<packet::FlowKey> flows) : flows_(std::move(flows)) {}
  Status prepare_migration(std::span<nf::Nf const* const> before) override {
    before_ = before.size();
    return absl::OkStatus();
  }
  void migrate_state(std::span<nf::Nf* const> before, nf::FlowFilter const& is_mine) override {
    EXPECT_EQ(before.size(), before_);
    for (nf::Nf* const each : before) {
      std::ranges::copy_if(dynamic_cast<FlowsNf&>(*each).flows_, std::back_inserter(flows_), is_mine);
    }
  }
  std::vector<packet::FlowKey> const& flows() const { return flows_; }

 private:
  std::vector<packet::FlowKey> flows_;
  std::size_t before_ = 0;
};

/// An NF with these flows in each shard.
std::vector<std::vector<NfEntry>> shards_with(std::vector<std::vector<packet::FlowKey>> flows) {
  std::vector<std::vector<NfEntry>> shards;
  for (std::vector<packet::FlowKey>& each : flows) {
    shards.emplace_back().push_back(entry_of("flows", kNumber, std::make_unique<FlowsNf>(std::move(each))));
  }
  return shards;
}

TEST_F(TakeoverTest, flows_go_to_the_shards_that_get_their_packets) {
  constexpr std::uint32_t kFlows = 100;
  const auto flow = [](std::uint32_t number) { return packet::FlowKey::of_v4(number, 9, 1000, 80, 6); };
  for (const std::size_t count : {1U, 2U, 3U, 16U}) {
    std::vector<std::vector<packet::FlowKey>> flows(4);
    for (std::uint32_t i = 0; i < kFlows; ++i) {
      flows[i % flows.size()].push_back(i % 2 == 0 ? flow(i) : flow(i).reversed());
    }
    RunningChain before(shards_with(flows));
    RunningChain next(shards_with(std::vector<std::vector<packet::FlowKey>>(count)));
    before.open();
    next.open(&before);
    Takeover takeover(before.parts(), next.parts(), nullptr);
    ASSERT_EQ(takeover.pair(nf::RunContext()), absl::OkStatus());
    EXPECT_TRUE(takeover.restarted().empty());
    ASSERT_EQ(takeover.start(), absl::OkStatus());
    for (NfEntry const* entry : before.pipeline().entries()[0]) {
      EXPECT_TRUE(before.run_end().is_migrated(*entry->instance)) << "none must finish";
    }
    before.end(absl::OkStatus(), true);
    SourcePauses pauses;
    takeover.wait(pauses);
    ASSERT_EQ(takeover.finish(), absl::OkStatus());
    const ShardMap map(static_cast<std::uint32_t>(count), next.pipeline().flow_key());
    std::size_t all = 0;
    for (std::uint32_t shard = 0; shard < count; ++shard) {
      NfEntry const& entry = *next.pipeline().entries()[0][shard];
      for (packet::FlowKey const& each : dynamic_cast<FlowsNf&>(entry.instance->nf()).flows()) {
        EXPECT_EQ(map.shard_of(each), shard);
        EXPECT_EQ(map.shard_of(each.reversed()), shard);
        ++all;
      }
    }
    EXPECT_EQ(all, kFlows);
  }
}

TEST_F(TakeoverTest, a_refusal_names_the_nf_and_is_final_only_for_its_configuration) {
  RunningChain before(row_of(number_of("a", 7)));
  RunningChain busy(row_of(number_of("a", 1, absl::UnavailableError("in use"))));
  EXPECT_EQ(pair(before, busy), absl::FailedPreconditionError("a.yaml:1:1: NF 'a': in use"));
  RunningChain wrong(row_of(number_of("a", 1, absl::InvalidArgumentError("unknown keys"))));
  EXPECT_EQ(pair(before, wrong), absl::InvalidArgumentError("a.yaml:1:1: NF 'a': unknown keys"));
}

TEST_F(TakeoverTest, a_chain_that_has_ended_is_not_replaced) {
  RunningChain before(row_of(number_of("a", 7)));
  RunningChain next(row_of(number_of("a", 1)));
  before.open();
  next.open(&before);
  Takeover takeover(before.parts(), next.parts(), nullptr);
  before.end(absl::OkStatus(), true);
  EXPECT_EQ(takeover.start(), absl::FailedPreconditionError("the chain to be replaced has ended"));
  EXPECT_FALSE(before.run_end().is_passed_on());
}

TEST_F(TakeoverTest, the_error_of_the_previous_chain_is_one_of_the_next) {
  RunningChain before(row_of(number_of("a", 7)));
  RunningChain next(row_of(number_of("a", 1)));
  before.open();
  next.open(&before);
  Takeover takeover(before.parts(), next.parts(), nullptr);
  ASSERT_EQ(takeover.pair(nf::RunContext()), absl::OkStatus());
  ASSERT_EQ(takeover.start(), absl::OkStatus());
  before.end(absl::DataLossError("disk full"), false);
  SourcePauses pauses;
  takeover.wait(pauses);
  EXPECT_EQ(takeover.finish(), absl::DataLossError("the replaced chain ended with an error: disk full"));
  EXPECT_EQ(next.number(0), 1) << "the state of packets in flight is unknown";
  EXPECT_FALSE(takeover.is_pending());
}

TEST_F(TakeoverTest, packets_wait_until_the_previous_chain_is_empty_and_leave_it_slots) {
  RunningChain before(row_of(number_of("a", 7)));
  RunningChain next(row_of(number_of("a", 1)));
  before.open();
  next.open(&before);
  Takeover takeover(before.parts(), next.parts(), nullptr);
  ASSERT_EQ(takeover.start(), absl::OkStatus());
  SourcePauses pauses;
  before.parts().ends->stop();
  auto waited = std::async(std::launch::async, [&] { takeover.wait(pauses); });
  while (!pauses.any()) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_GT(next.pipeline().rx()[0]->packets(), 0U);
  EXPECT_GE(next.parts().ends->pool_of(0).free_slots(), kSharedSlots / 4);
  EXPECT_EQ(waited.wait_for(0ms), std::future_status::timeout);
  before.end(absl::OkStatus(), true);
  waited.get();
  EXPECT_FALSE(pauses.any());
  EXPECT_EQ(pauses.count(), 1U);
}

}  // namespace
}  // namespace catena::runtime
