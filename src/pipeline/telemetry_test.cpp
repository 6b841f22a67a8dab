// SPDX-License-Identifier: Apache-2.0
#include "pipeline/telemetry.hpp"

#include "nf/testing/marker.hpp"
#include "pipeline/counts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace catena::runtime {
namespace {

constexpr std::uint32_t kInOneUnit = 64;

/// Has the frames of the marker's tests in one unit, and says that it has done a part of its work.
class SlowSource final : public io::Source {
 public:
  explicit SlowSource(double part_done) : part_done_(part_done) {}
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    starved = !pool.acquire_slots(unit, static_cast<std::uint32_t>(frames_.size()));
    for (std::size_t i = 0; i < frames_.size() && !starved; ++i) {
      std::ranges::copy(frames_[i], pool.slot(unit.slots()[i]) + packet::kSlotHeadroom);
      pool.set_arrived(unit.slots()[i], static_cast<std::uint32_t>(frames_[i].size()), next_index++, 0);
      ++unit.count;
    }
    return absl::OkStatus();
  }
  bool finished() const override { return false; }
  io::SourceCounts counts() const override { return {frames_.size(), {}}; }
  double part_done() const override { return part_done_; }
  std::string describe() const override { return "slow"; }

 private:
  double part_done_;
  std::vector<packet::testing::Frame> frames_ = nf::testing::marker_frames(50);
};

/// Refuses the first packet.
class FussySink final : public io::Sink {
 public:
  Status send(memory::PacketPool& pool, memory::Unit& unit) override {
    const packet::Batch batch = pool.batch(unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      taken_ += batch[i].verdict() != packet::Verdict::kDrop ? 1 : 0;
    }
    pool.release_slots(unit, 0, unit.count);
    return absl::OkStatus();
  }
  Status finish() override { return absl::OkStatus(); }
  io::SinkCounts counts() const override {
    return {taken_ - std::min<std::uint64_t>(taken_, 1), {{"first", std::min<std::uint64_t>(taken_, 1)}}};
  }
  std::string describe() const override { return "fussy"; }

 private:
  std::uint64_t taken_ = 0;
};

/// rx, an NF and tx, without a session.
class SmallChain {
 public:
  explicit SmallChain(double part_done) : source_(part_done) {}
  void run() {
    EXPECT_TRUE(rx_.poll().ok() && nf_.poll().ok() && tx_.poll().ok());
    rx_.worked(10, 30);
    nf_.worked(30, 70);
  }
  void add_to(CountedParts& parts) {
    parts.nfs.push_back({parts.rx.size(), &instance_, nullptr, &nf_});
    parts.rx.push_back(&rx_);
    parts.tx.push_back(&tx_);
    parts.pools.push_back(pool_.get());
  }

 private:
  std::unique_ptr<memory::PacketPool> pool_ = memory::PacketPool::create(1024, kInOneUnit, 2).value();
  memory::UnitQueue before_nf_{pool_->arena(), 0};
  memory::UnitQueue before_tx_{pool_->arena(), 1};
  SlowSource source_;
  FussySink sink_;
  nf::Descriptor descriptor_ = nf::testing::marker_descriptor();
  nf::Instance instance_{"m", descriptor_, nf::testing::make_marker(), nf::OnUnsupported::kPass, false};
  std::atomic<bool> stop_{false};
  RxStage rx_{source_, *pool_, before_nf_, stop_};
  CpuStage nf_{instance_, 0, *pool_, before_nf_, before_tx_};
  TxStage tx_{sink_, *pool_, before_tx_};
};

TEST(Telemetry, counts_what_the_parts_of_a_chain_do) {
  SmallChain chain(0.5);
  FlowControl flow({});
  CountedParts parts{.flow = &flow};
  chain.add_to(parts);
  Telemetry telemetry(false);
  telemetry.watch(parts);
  EXPECT_EQ(telemetry.progress().received, 0U);
  chain.run();
  const metrics::Snapshot counts = telemetry.counts();
  EXPECT_EQ(counts.sum(counts::kReceived), 50U);
  EXPECT_EQ(counts.sum(counts::kIn, {{"nf", "m"}, {"shard", "0"}}), 50U);
  const std::uint64_t dropped = counts.sum(counts::kDrops, {{"nf", "m"}});
  EXPECT_GT(dropped, 0U) << "some have the TTL that it drops";
  EXPECT_EQ(counts.sum(counts::kSent), 49 - dropped);
  EXPECT_EQ(counts.times(counts::kLatency).count(), 50 - dropped);
  EXPECT_EQ(counts.sum(counts::kBusy, {{"stage", "rx"}}), 20U);
  EXPECT_EQ(counts.sum(counts::kBusy, {{"stage", "m"}, {"nf", "m"}, {"shard", "0"}}), 40U);
  EXPECT_EQ(counts.sum(counts::kReceived, {{"shard", "0"}}), 0U) << "one rx is of the chain, not of a shard";
  EXPECT_EQ(counts.sums(counts::kSlotsInUse, "shard").size(), 0U);
  EXPECT_EQ(counts.sum(counts::kSlotsInUse), 0U);
  const RunProgress progress = telemetry.progress();
  EXPECT_EQ(progress.received, 50U);
  EXPECT_EQ(progress.sent, 49 - dropped);
  EXPECT_EQ(progress.dropped, 1 + dropped);
  EXPECT_EQ(progress.part_done, 0.5);
}

TEST(Telemetry, counts_each_shard) {
  std::deque<SmallChain> shards;
  FlowControl flow({});
  CountedParts parts{.flow = &flow};
  for (const double part_done : {0.5, 0.25, 0.75}) {
    shards.emplace_back(part_done).add_to(parts);
  }
  Telemetry telemetry(false);
  telemetry.watch(parts);
  shards[1].run();
  shards[2].run();
  shards[2].run();
  const metrics::Snapshot counts = telemetry.counts();
  for (const std::string_view name : {counts::kReceived, counts::kIn}) {
    EXPECT_EQ(counts.sum(name, {{"shard", "0"}}), 0U) << name;
    EXPECT_EQ(counts.sum(name, {{"shard", "1"}}), 50U) << name;
    EXPECT_EQ(counts.sum(name, {{"shard", "2"}}), 100U) << name;
  }
  EXPECT_EQ(telemetry.progress().received, 150U);
  EXPECT_EQ(telemetry.progress().part_done, 0.25) << "the slowest one's";
}

TEST(Telemetry, counts_what_a_full_ring_refused) {
  const auto pool = memory::PacketPool::create(1024, kInOneUnit, 2).value();
  memory::UnitQueue ring(pool->arena(), 0);
  memory::UnitQueue last(pool->arena(), 1, 2);
  FlowControl flow({{.batch = 1, .slow_down = 1, .fasten_up = 0, .share = 1}});
  flow.attach({.mode = chain::FlowMode::kVanilla}, {.nfs = {{"m", 0, 0, {{&ring, &last, nullptr}}}}});
  SmallChain chain(0);
  CountedParts parts{.flow = &flow};
  chain.add_to(parts);
  Telemetry telemetry(false);
  telemetry.watch(parts);
  const std::uint64_t before = telemetry.progress().dropped;
  memory::Unit* const unit = pool->acquire_unit();
  ASSERT_TRUE(pool->acquire_slots(*unit, 2));
  unit->count = 2;
  for (std::uint32_t i = 0; i < 2; ++i) {
    pool->set_arrived(unit->slots()[i], 60, i, 0);
  }
  ring.push(unit);
  EXPECT_EQ(telemetry.progress().dropped, before + 2);
  EXPECT_EQ(telemetry.counts().sum(counts::kQueueDrops, {{"nf", "m"}}), 2U);
}

TEST(Telemetry, stages_have_logs_for_spans_where_they_are_traced) {
  Telemetry without(false);
  EXPECT_EQ(without.trace_of("rx"), nullptr);
  EXPECT_TRUE(without.traces().empty());
  Telemetry with(true);
  const trace::SpanLog* const rx = with.trace_of("rx");
  const trace::SpanLog* const nf = with.trace_of("fw/1");
  ASSERT_TRUE(rx != nullptr && nf != nullptr && rx != nf);
  ASSERT_EQ(with.traces().size(), 2U);
  EXPECT_EQ(with.traces()[0].log, rx);
  EXPECT_EQ(with.traces()[1].log, nf);
  EXPECT_EQ(with.traces()[1].name, "fw/1");
}

TEST(Telemetry, lines_are_kept_only_where_they_are_wanted) {
  const auto pool = memory::PacketPool::create(1024, kInOneUnit, 1).value();
  Telemetry telemetry(false);
  EXPECT_EQ(telemetry.lines(), nullptr);
  telemetry.keep_lines(pool->arena());
  ASSERT_NE(telemetry.lines(), nullptr);
  EXPECT_TRUE(telemetry.lines()->of(*pool->acquire_unit()).records.empty());
}

TEST(Telemetry, the_time_of_a_run_stands_still_at_its_end) {
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  Telemetry telemetry(false);
  EXPECT_EQ(telemetry.seconds(), 0);
  telemetry.begin();
  sleep();
  const double early = telemetry.seconds();
  EXPECT_GE(early, 0.005);
  sleep();
  telemetry.end();
  const double all = telemetry.seconds();
  EXPECT_GE(all, early + 0.005);
  sleep();
  EXPECT_EQ(telemetry.seconds(), all);
}

}  // namespace
}  // namespace catena::runtime
