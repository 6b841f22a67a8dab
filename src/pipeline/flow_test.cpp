// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow.hpp"

#include "nf/testing/marker.hpp"
#include "pipeline/host_stages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace catena::runtime {
namespace {

using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using State = CongestionMonitor::State;

constexpr std::uint32_t kUnitPackets = 64;
constexpr std::uint32_t kSlots = 32768;
constexpr chain::FlowLimits kLimits{.batch = 256, .slow_down = 717, .fasten_up = 461, .share = 717};

class FlowTest : public ::testing::Test {
 protected:
  memory::Unit* unit(std::uint32_t packets = kUnitPackets) {
    memory::Unit* const unit = pool_->acquire_unit();
    EXPECT_TRUE(unit != nullptr && pool_->acquire_slots(*unit, packets));
    unit->count = packets;
    for (const std::uint32_t slot : unit->used_slots()) {
      packet::testing::Frame const& frame = frames_[next_ % frames_.size()];
      std::copy(frame.begin(), frame.end(), pool_->slot(slot) + packet::kSlotHeadroom);
      pool_->set_arrived(slot, static_cast<std::uint32_t>(frame.size()), next_++, 0);
    }
    return unit;
  }
  void fill(memory::UnitQueue& queue, std::uint32_t units) {
    for (std::uint32_t i = 0; i < units; ++i) {
      queue.push(unit());
    }
  }

  std::vector<packet::testing::Frame> frames_ = nf::testing::marker_frames(200);
  std::unique_ptr<memory::PacketPool> pool_ = memory::PacketPool::create(kSlots, kUnitPackets, 12).value();
  std::uint64_t next_ = 0;
};

TEST_F(FlowTest, a_ring_is_congested_from_one_limit_up_to_another) {
  memory::UnitQueue queue(pool_->arena(), 0);
  CongestionMonitor monitor("nf", queue, kLimits, 3, nanoseconds(0));
  const auto look = [&] {
    monitor.look(std::chrono::steady_clock::now());
    return monitor.state();
  };
  fill(queue, 11);  // 704
  EXPECT_EQ(look(), State::kFree);
  fill(queue, 1);
  EXPECT_EQ(monitor.state(), State::kFree) << "nobody looked";
  EXPECT_NE(monitor.state_now(), State::kFree) << "who asks sees it";
  EXPECT_NE(look(), State::kFree);
  EXPECT_EQ(monitor.slow_downs(), 3U) << "one to each who is in front";
  EXPECT_NE(look(), State::kFree);
  EXPECT_EQ(monitor.slow_downs(), 3U) << "the state is the same";
  for (int i = 0; i < 4; ++i) {
    queue.pop();
  }
  EXPECT_NE(look(), State::kFree) << "512: between the limits";
  queue.pop();
  EXPECT_EQ(look(), State::kFree) << "448";
  EXPECT_EQ(monitor.fasten_ups(), 3U);
  fill(queue, 2);
  EXPECT_EQ(look(), State::kFree) << "576: between the limits, from below";
  EXPECT_EQ(monitor.most(), 768U);
}

TEST_F(FlowTest, a_ring_is_looked_at_once_in_a_period) {
  memory::UnitQueue queue(pool_->arena(), 0);
  CongestionMonitor monitor("nf", queue, kLimits, 1, std::chrono::microseconds(5));
  const auto begin = std::chrono::steady_clock::now();
  monitor.look(begin);
  fill(queue, 20);
  monitor.look(begin + nanoseconds(4999));
  EXPECT_EQ(monitor.state(), State::kFree);
  monitor.look(begin + nanoseconds(5000));
  EXPECT_NE(monitor.state(), State::kFree);
}

TEST_F(FlowTest, who_has_other_ways_to_send_goes_on_until_one_has_its_share) {
  memory::UnitQueue slow(pool_->arena(), 0);
  memory::UnitQueue fast(pool_->arena(), 1);
  chain::FlowLimits limits = kLimits;
  limits.share = 2000;
  CongestionMonitor of_slow("slow", slow, limits, 1, nanoseconds(0));
  CongestionMonitor of_fast("fast", fast, limits, 1, nanoseconds(0));
  const RateController controller({&of_slow, &of_fast});
  const RateController of_one({&of_slow});
  EXPECT_TRUE(RateController().is_on()) << "tx takes all";
  EXPECT_TRUE(controller.is_on());
  fill(slow, 12);
  EXPECT_TRUE(controller.is_on()) << "slow is congested, fast is not";
  EXPECT_EQ(of_slow.state_now(), State::kCongested) << "a burst may wait";
  EXPECT_FALSE(of_one.is_on());
  fill(fast, 12);
  EXPECT_FALSE(controller.is_on()) << "both are";
  while (fast.pop() != nullptr) {
  }
  EXPECT_TRUE(controller.is_on());
  fill(slow, 10);  // 1,408
  EXPECT_EQ(of_slow.state_now(), State::kCrowded) << "more than half way from 717 to 2,000";
  EXPECT_TRUE(controller.is_on()) << "others go on";
  fill(slow, 10);  // 2,048
  EXPECT_FALSE(controller.is_on()) << "it has its share";
  of_slow.look(std::chrono::steady_clock::now());
  slow.pop();
  EXPECT_FALSE(controller.is_on()) << "until it took a batch";
  for (int i = 0; i < 4; ++i) {
    slow.pop();
  }
  of_slow.look(std::chrono::steady_clock::now());
  EXPECT_TRUE(controller.is_on());
}

TEST(SourcePauses, count_the_time_in_which_any_source_is_paused) {
  using std::chrono::milliseconds;
  SourcePauses pauses;
  const auto sleep = [] { std::this_thread::sleep_for(milliseconds(10)); };
  sleep();
  EXPECT_EQ(pauses.time(), nanoseconds(0)) << "none was paused";
  const auto began = std::chrono::steady_clock::now();
  pauses.begin();
  sleep();
  const nanoseconds so_far = pauses.time();
  EXPECT_GE(so_far, milliseconds(10)) << "the present pause counts";
  EXPECT_TRUE(pauses.any());
  pauses.begin();
  sleep();
  pauses.end();
  EXPECT_TRUE(pauses.any()) << "one of two";
  sleep();
  pauses.end();
  const nanoseconds all = pauses.time();
  EXPECT_FALSE(pauses.any());
  EXPECT_GE(all, milliseconds(30));
  EXPECT_LE(all, std::chrono::steady_clock::now() - began) << "each moment once, however many were paused";
  EXPECT_EQ(pauses.count(), 2U);
  sleep();
  EXPECT_EQ(pauses.time(), all) << "the pauses are over";
}

/// NFs in a row, each with its ring and gate; who polls them when is up to the test.
class Row {
 public:
  Row(memory::PacketPool& pool, std::size_t nfs) : pool_(&pool), was_paused_(nfs) {
    for (std::uint32_t queue = 0; queue <= nfs; ++queue) {
      queues_.emplace_back(pool.arena(), queue);
    }
    for (std::size_t nf = 0; nf < nfs; ++nf) {
      instances_.push_back(std::make_unique<nf::Instance>("nf" + std::to_string(nf), descriptor_,
                                                          nf::testing::make_marker(), nf::OnUnsupported::kPass, false));
      monitors_.emplace_back("nf" + std::to_string(nf), queues_[nf], kLimits, 1, nanoseconds(0));
    }
    for (std::uint32_t nf = 0; nf < nfs; ++nf) {
      gates_.emplace_back(&monitors_[nf], nf + 1 < nfs ? RateController({&monitors_[nf + 1]}) : RateController());
      stages_.emplace_back(*instances_[nf], nf, pool, queues_[nf], queues_[nf + 1]);
      stages_.back().control(gates_.back());
    }
  }
  memory::UnitQueue& first() { return queues_.front(); }
  /// Polls NFs [0, end), and notes who paused or went on.
  void poll(std::size_t end) {
    for (std::size_t nf = 0; nf < stages_.size(); ++nf) {
      if (nf < end) {
        EXPECT_TRUE(stages_[nf].poll().ok());
      }
      if (gates_[nf].was_paused() != was_paused_[nf]) {
        (was_paused_[nf] ? resumed_ : paused_).push_back(nf);
        was_paused_[nf] = !was_paused_[nf];
      }
    }
    for (memory::Unit* unit = queues_.back().pop(); unit != nullptr; unit = queues_.back().pop()) {
      pool_->release_slots(unit->used_slots());
      pool_->release_unit(unit);
    }
  }
  std::vector<std::size_t> const& paused() const { return paused_; }
  std::vector<std::size_t> const& resumed() const { return resumed_; }
  bool may_rx_take() { return RateController({&monitors_.front()}).is_on(); }
  std::uint64_t packets(std::size_t nf) const { return stages_[nf].packets(); }
  std::uint64_t waiting(std::size_t nf) const { return queues_[nf].packets(); }
  std::uint64_t signals() const {
    std::uint64_t sum = 0;
    for (CongestionMonitor const& monitor : monitors_) {
      sum += monitor.slow_downs() + monitor.fasten_ups();
    }
    return sum;
  }

 private:
  memory::PacketPool* pool_;
  nf::Descriptor descriptor_ = nf::testing::marker_descriptor();
  std::deque<memory::UnitQueue> queues_;
  std::vector<std::unique_ptr<nf::Instance>> instances_;
  std::deque<CongestionMonitor> monitors_;
  std::deque<FlowGate> gates_;
  std::deque<CpuStage> stages_;
  std::vector<bool> was_paused_;
  std::vector<std::size_t> paused_;
  std::vector<std::size_t> resumed_;
};

TEST_F(FlowTest, nfs_in_front_of_a_slow_one_pause_in_order_and_resume_in_reverse) {
  constexpr std::size_t kNfs = 4;
  Row row(*pool_, kNfs);
  std::uint64_t rounds = 0;
  while (row.may_rx_take() && ++rounds < 1000) {  // the last NF does not get to work
    fill(row.first(), 4);
    row.poll(kNfs - 1);
  }
  EXPECT_THAT(row.paused(), ElementsAre(2, 1, 0)) << "the cascade reaches rx last";
  ASSERT_LT(rounds, 1000U);
  const std::vector<std::uint64_t> had{row.packets(0), row.packets(1), row.packets(2)};
  for (int i = 0; i < 20; ++i) {
    row.poll(kNfs - 1);
  }
  EXPECT_EQ(had, (std::vector<std::uint64_t>{row.packets(0), row.packets(1), row.packets(2)}))
      << "who is paused takes nothing";
  for (std::size_t nf = 0; nf < kNfs; ++nf) {
    EXPECT_LE(row.waiting(nf), kLimits.slow_down + 256U) << "at most what was under way";
  }
  for (int i = 0; i < 100; ++i) {
    row.poll(kNfs);  // now it works, and nothing more comes
  }
  EXPECT_THAT(row.resumed(), ElementsAre(2, 1, 0));
  EXPECT_EQ(row.packets(3), row.packets(0)) << "none was lost";
  EXPECT_EQ(row.signals(), 2 * kNfs) << "a slow-down and a fasten-up for each edge, the one to rx among them";
}

TEST_F(FlowTest, signals_grow_with_the_edges_of_a_chain_and_not_with_their_square) {
  std::vector<double> signals_an_edge;
  for (const std::size_t nfs : {2U, 4U, 8U}) {
    Row row(*pool_, nfs);
    for (int round = 0; round < 4000; ++round) {
      if (row.may_rx_take()) {
        fill(row.first(), 4);
      }
      row.poll(round % 4 == 0 ? nfs : nfs - 1);  // the last NF gets a quarter of the turns
    }
    signals_an_edge.push_back(static_cast<double>(row.signals()) / static_cast<double>(nfs));
    for (int i = 0; i < 200; ++i) {
      row.poll(nfs);
    }
    EXPECT_EQ(row.packets(nfs - 1), row.packets(0));
  }
  EXPECT_LE(signals_an_edge[2], 1.5 * signals_an_edge[0]);
}

TEST_F(FlowTest, a_ring_with_a_bound_drops_what_does_not_fit) {
  memory::UnitQueue ended(pool_->arena(), 0, 2);
  memory::UnitQueue queue(pool_->arena(), 1);
  queue.bound(150, ended);
  memory::Unit* const first = unit();
  memory::Unit* const second = unit();
  memory::Unit* const third = unit();
  pool_->meta().verdict[third->slots()[5]] = static_cast<std::uint8_t>(packet::Verdict::kReply);
  pool_->meta().verdict[third->slots()[6]] = static_cast<std::uint8_t>(packet::Verdict::kDrop);
  queue.push(first);
  queue.push(second);
  queue.push(third);
  EXPECT_EQ(queue.refused(), kUnitPackets - 2U) << "two had ended";
  EXPECT_EQ(ended.pop(), third);
  const auto verdict = [this](std::uint32_t slot) { return static_cast<packet::Verdict>(pool_->meta().verdict[slot]); };
  EXPECT_EQ(verdict(third->slots()[0]), packet::Verdict::kDrop);
  EXPECT_EQ(verdict(third->slots()[5]), packet::Verdict::kReply) << "an answer leaves";
  EXPECT_EQ(verdict(first->slots()[0]), packet::Verdict::kPass);
  EXPECT_EQ(queue.pop(), first);
  queue.push(third);
  EXPECT_EQ(queue.packets(), 2U * kUnitPackets) << "there is room again";
  queue.close();
  EXPECT_FALSE(ended.drained()) << "another one pushes there, too";
  ended.close();
  EXPECT_TRUE(ended.drained());
}

}  // namespace
}  // namespace catena::runtime
