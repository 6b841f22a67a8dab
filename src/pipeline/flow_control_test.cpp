// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow_control.hpp"

#include "chain/chain_file.hpp"
#include "pipeline/counts.hpp"
#include "pipeline/test_support.hpp"
#include "pipeline/testing/faulty_relay.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using chain::FlowMode;

constexpr std::uint32_t kInUnit = 64;
constexpr chain::FlowLimits kRingLimits{
    .batch = 256, .slow_down = 717, .fasten_up = 461, .share = 717, .in_process = 512};
constexpr std::uint32_t kTooMany = 768;  ///< packets, for such a ring

/// Only asks whether it may take packets.
class AskingStage final : public PacketStage {
 public:
  AskingStage() : PacketStage("asking") {}
  Result<Progress> poll() override { return may_take() ? Progress::kWorked : Progress::kIdle; }
};

class FlowControlTest : public ::testing::Test {
 protected:
  memory::UnitQueue& queue(std::uint32_t pushers = 1) {
    return queues_.emplace_back(pool_->arena(), static_cast<std::uint32_t>(queues_.size()), pushers);
  }
  /// An NF with a ring and a stage in each shard.
  NfPath nf(std::string name, std::size_t number, std::size_t segment = 0, std::size_t shards = 1) {
    NfPath nf{std::move(name), segment, number};
    for (std::size_t shard = 0; shard < shards; ++shard) {
      nf.shards.push_back({&queue(), &last_, &stages_.emplace_back()});
    }
    return nf;
  }
  RxPath rx(memory::UnitQueue& to, bool is_live = false) {
    return {&rx_.emplace_back(sources_.emplace_back(), *pool_, to, stop_), is_live};
  }
  /// rx, a, b, tx.
  FlowPaths row() {
    FlowPaths paths{.nfs = {nf("a", 0), nf("b", 1)}};
    paths.rx.push_back(rx(*paths.nfs[0].shards[0].in));
    return paths;
  }
  void fill(NfPath const& nf, std::uint32_t packets = kTooMany, std::size_t shard = 0) {
    for (; packets > 0; packets -= kInUnit) {
      memory::Unit* const unit = pool_->acquire_unit();
      ASSERT_TRUE(unit != nullptr && pool_->acquire_slots(*unit, kInUnit));
      unit->count = kInUnit;
      nf.shards[shard].in->push(unit);
    }
  }
  static void drain(NfPath const& nf, std::size_t shard = 0) {
    while (nf.shards[shard].in->pop() != nullptr) {
    }
  }
  static bool takes(NfPath const& nf, std::size_t shard = 0) {
    return *nf.shards[shard].stage->poll() == Progress::kWorked;
  }
  static bool takes(RxPath const& rx) { return *rx.stage->poll() == Progress::kWorked; }
  static metrics::Snapshot counts_of(FlowControl const& flow) {
    metrics::Registry registry;
    flow.register_counts(registry);
    return registry.read();
  }

  const chain::FlowConfig backpressure_{.mode = FlowMode::kBackpressure, .period_us = 0};
  std::unique_ptr<memory::PacketPool> pool_ = memory::PacketPool::create(32768, kInUnit, 12).value();
  std::deque<memory::UnitQueue> queues_;
  memory::UnitQueue last_{pool_->arena(), 11, 3};
  std::deque<AskingStage> stages_;
  std::deque<testing::OnePacketSource> sources_;
  std::atomic<bool> stop_{false};
  std::deque<RxStage> rx_;
};

TEST_F(FlowControlTest, each_stage_waits_for_the_ring_after_it) {
  const FlowPaths paths = row();
  FlowControl flow({kRingLimits, kRingLimits});
  flow.attach(backpressure_, paths);
  EXPECT_TRUE(takes(paths.rx[0]) && takes(paths.nfs[0]) && takes(paths.nfs[1]));
  fill(paths.nfs[1]);
  EXPECT_FALSE(takes(paths.nfs[0]));
  EXPECT_TRUE(takes(paths.nfs[1])) << "tx takes all";
  EXPECT_TRUE(takes(paths.rx[0])) << "a has room";
  EXPECT_FALSE(flow.pauses().any());
  fill(paths.nfs[0]);
  EXPECT_FALSE(takes(paths.rx[0]));
  EXPECT_TRUE(flow.pauses().any());
  drain(paths.nfs[1]);
  EXPECT_TRUE(takes(paths.nfs[1])) << "and has looked at its ring";
  EXPECT_TRUE(takes(paths.nfs[0]));
  const metrics::Snapshot counts = counts_of(flow);
  EXPECT_EQ(counts.sum(counts::kRxPauses), 1U);
  EXPECT_EQ(counts.sum(counts::kPauses, {{"nf", "a"}, {"shard", "0"}}), 1U);
  EXPECT_EQ(counts.sum(counts::kPauses, {{"nf", "b"}}), 0U);
  EXPECT_EQ(counts.sum(counts::kSlowDowns, {{"nf", "b"}}), 1U);
  EXPECT_EQ(counts.sum(counts::kWaiting, {{"nf", "b"}}), kTooMany);
  flow.end(false);
  EXPECT_FALSE(flow.pauses().any()) << "whatever ended the run";
}

TEST_F(FlowControlTest, rings_of_vanilla_drop_and_nobody_waits) {
  const FlowPaths paths = row();
  FlowControl flow({kRingLimits, kRingLimits});
  flow.attach({.mode = FlowMode::kVanilla}, paths);
  fill(paths.nfs[0]);
  EXPECT_EQ(paths.nfs[0].shards[0].in->packets(), 704U);
  EXPECT_TRUE(takes(paths.rx[0]));
  const metrics::Snapshot counts = counts_of(flow);
  EXPECT_EQ(counts.sum(counts::kQueueDrops, {{"nf", "a"}}), 64U);
  EXPECT_EQ(counts.sum(counts::kQueueDrops, {{"nf", "b"}}), 0U);
  EXPECT_EQ(flow.refused(), 64U);
  for (metrics::Sample const& sample : counts.samples()) {
    EXPECT_EQ(sample.name, counts::kQueueDrops) << "there are no pauses to count";
  }
}

TEST_F(FlowControlTest, without_limits_nothing_is_bounded) {
  const FlowPaths paths = row();
  FlowControl flow({});
  flow.attach({.mode = FlowMode::kPool}, paths);
  fill(paths.nfs[0]);
  fill(paths.nfs[1]);
  EXPECT_EQ(paths.nfs[0].shards[0].in->packets(), kTooMany);
  EXPECT_TRUE(takes(paths.rx[0]) && takes(paths.nfs[0]));
  EXPECT_TRUE(counts_of(flow).samples().empty());
  EXPECT_EQ(flow.limit_in_process(0, 2), std::nullopt);
}

TEST_F(FlowControlTest, who_has_shards_of_its_own_waits_for_those) {
  FlowPaths paths{.nfs = {nf("a", 0, 0, 2), nf("b", 1, 0, 2)}, .has_own_ends = true};
  paths.rx = {rx(*paths.nfs[0].shards[0].in), rx(*paths.nfs[0].shards[1].in)};
  FlowControl flow({kRingLimits, kRingLimits});
  flow.attach(backpressure_, paths);
  fill(paths.nfs[1], kTooMany, 1);
  EXPECT_TRUE(takes(paths.nfs[0], 0));
  EXPECT_FALSE(takes(paths.nfs[0], 1));
  fill(paths.nfs[0], kTooMany, 0);
  EXPECT_FALSE(takes(paths.rx[0]));
  EXPECT_TRUE(takes(paths.rx[1]));
  EXPECT_EQ(counts_of(flow).sum(counts::kPauses, {{"nf", "a"}, {"shard", "1"}}), 1U);
}

TEST_F(FlowControlTest, who_sends_to_other_shards_waits_for_each) {
  FlowPaths paths{.nfs = {nf("a", 0, 0, 2), nf("b", 1, 1, 3)}};
  paths.rx.push_back(rx(*paths.nfs[0].shards[0].in));
  FlowControl flow({kRingLimits, kRingLimits});
  flow.attach(backpressure_, paths);
  fill(paths.nfs[1], kTooMany, 2);
  EXPECT_FALSE(takes(paths.nfs[0], 0));
  EXPECT_FALSE(takes(paths.nfs[0], 1));
  drain(paths.nfs[1], 2);
  EXPECT_TRUE(takes(paths.nfs[1], 2));
  EXPECT_TRUE(takes(paths.nfs[0], 0));
  fill(paths.nfs[0], kTooMany, 1);
  EXPECT_FALSE(takes(paths.rx[0])) << "one rx for all shards";
}

TEST_F(FlowControlTest, nfs_of_one_process_wait_for_what_comes_after_the_last) {
  FlowPaths paths{.nfs = {nf("a", 1), nf("b", 1), nf("c", 2)}};
  paths.nfs[1].shards[0].stage = nullptr;
  paths.rx.push_back(rx(*paths.nfs[0].shards[0].in));
  FlowControl flow({kRingLimits, kRingLimits, kRingLimits});
  flow.attach(backpressure_, paths);
  fill(paths.nfs[1]);
  EXPECT_TRUE(takes(paths.nfs[0])) << "no packets wait there in a chain";
  fill(paths.nfs[2]);
  EXPECT_FALSE(takes(paths.nfs[0]));
  EXPECT_EQ(flow.limit_in_process(0, 2), 1024U);
}

TEST_F(FlowControlTest, rx_that_cannot_wait_drops_for_a_branch_with_half_of_its_share) {
  const Result<chain::ChainConfig> chain = chain::parse_chain(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: g}\nspec:\n  rx: {generator: {}}\n  tx: null\n"
      "  nfs: [{name: a, type: firewall}, {name: b, type: firewall}]\n"
      "  graph: [{from: rx, match: {rx_port: 0}, to: b}, {from: rx, to: a}, {from: [a, b], to: tx}]\n",
      "c.yaml");
  ASSERT_TRUE(chain.ok()) << chain.status();
  std::vector<chain::NextNodeTable> tables;
  for (const std::size_t from : {chain::kRx, std::size_t{0}, std::size_t{1}}) {
    tables.push_back(*chain::NextNodeTable::create(*chain->graph, from, {}));
  }
  chain::FlowLimits limits = kRingLimits;
  limits.share = 2000;
  for (const bool is_live : {true, false}) {
    FlowPaths paths{.nfs = {nf("a", 0), nf("b", 1)}, .tables = tables};
    paths.rx.push_back(rx(queue(), is_live));
    FlowControl flow({limits, limits});
    flow.attach(backpressure_, paths);
    fill(paths.nfs[1], 1'344);
    EXPECT_TRUE(takes(paths.rx[0]));
    EXPECT_EQ(paths.rx[0].stage->refused(), 0U) << "a burst may wait";
    fill(paths.nfs[1], 64);
    EXPECT_TRUE(takes(paths.rx[0])) << "there is the other branch";
    EXPECT_EQ(paths.rx[0].stage->refused(), is_live ? 1U : 0U);
    fill(paths.nfs[1], 640);
    EXPECT_FALSE(takes(paths.rx[0])) << "b has its share";
    EXPECT_TRUE(takes(paths.nfs[0])) << "it sends to tx alone";
  }
}

/// Chains with signals to others.
class FlowControlOfHosts : public FlowControlTest {
 protected:
  void SetUp() override { folder_.write("key", "00112233445566778899aabbccddeeff\n"); }
  chain::FlowSignalsConfig listening() const { return {.listen = address_, .key_file = folder_.path("key")}; }
  chain::FlowSignalsConfig sending() const { return {.downstream = {address_}, .key_file = folder_.path("key")}; }

  ScratchFolder folder_;
  SocketAddress address_ = *parse_socket_address(concat("127.0.0.1:", testing::free_udp_port()));
};

TEST_F(FlowControlOfHosts, who_sends_to_tx_waits_for_the_next_chain) {
  FlowControl next({});
  ASSERT_EQ(next.connect(listening()), absl::OkStatus());
  const FlowPaths paths = row();
  FlowControl flow({kRingLimits, kRingLimits});
  ASSERT_EQ(flow.connect(sending()), absl::OkStatus());
  flow.attach(backpressure_, paths);
  const auto comes = [&paths](bool takes_packets) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (takes(paths.nfs[1]) != takes_packets && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return takes(paths.nfs[1]) == takes_packets;
  };
  next.pauses().begin();
  EXPECT_TRUE(comes(false));
  EXPECT_TRUE(takes(paths.nfs[0])) << "it does not send to tx";
  EXPECT_EQ(counts_of(flow).sum(counts::kTxCongested), 1U);
  next.pauses().end();
  EXPECT_TRUE(comes(true));
  EXPECT_EQ(counts_of(next).sum(counts::kFlowAskers), 1U);
}

TEST_F(FlowControlOfHosts, the_chain_that_replaces_another_one_shares_its_signals) {
  FlowControl before({});
  ASSERT_EQ(before.connect(listening()), absl::OkStatus());
  FlowControl next({});
  ASSERT_EQ(next.connect(listening(), &before), absl::OkStatus());
  before.pauses().begin();
  EXPECT_TRUE(next.pauses().any());
  before.end(true);
  FlowControl third({});
  EXPECT_FALSE(third.connect(listening()).ok()) << "the port is in use";
  next.end(false);
  EXPECT_EQ(third.connect(listening()), absl::OkStatus());
}

TEST_F(FlowControlOfHosts, other_signals_than_before_are_no_error_of_the_file) {
  FlowControl before({});
  ASSERT_EQ(before.connect(listening()), absl::OkStatus());
  chain::FlowSignalsConfig other = listening();
  other.downstream = {*parse_socket_address("127.0.0.1:9")};
  FlowControl next({});
  EXPECT_EQ(next.connect(other, &before).code(), absl::StatusCode::kFailedPrecondition);
  FlowControl silent({});
  EXPECT_EQ(silent.connect(std::nullopt, &before), absl::OkStatus());
  before.pauses().begin();
  EXPECT_FALSE(silent.pauses().any()) << "nobody is told of it";
}

}  // namespace
}  // namespace catena::runtime
