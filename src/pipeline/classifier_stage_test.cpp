// SPDX-License-Identifier: Apache-2.0
#include "pipeline/classifier_stage.hpp"

#include "chain/chain_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t kSlotsToClassify = 2048;
constexpr std::uint32_t kPacketsToClassify = 64;

/// What stands behind "graph:" of a chain of NFs a and b.
chain::NextNodeTable table_of(std::string const& graph) {
  const Result<chain::ChainConfig> chain = chain::parse_chain(
      concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: g}\nspec:\n  rx: {generator: {}}\n  tx: null\n"
             "  unmatched: drop\n  nfs: [{name: a, type: firewall}, {name: b, type: firewall}]\n  graph: ",
             // packets come to each of them
             graph.substr(0, graph.size() - 1), ", {from: a, to: b}]"),
      "c.yaml");
  EXPECT_TRUE(chain.ok()) << chain.status();
  Result<chain::NextNodeTable> table = chain::NextNodeTable::create(*chain->graph, chain::kRx, {});
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

/// UDP to a port that is the number of the packet modulo 10.
void put_numbered(memory::PacketPool& pool, std::uint32_t slot, std::uint64_t index) {
  std::uint8_t* frame = pool.slot(slot) + packet::kSlotHeadroom;
  std::fill_n(frame, 60, std::uint8_t{0});
  frame[12] = 8;
  frame[14] = 0x45;
  frame[17] = 46;
  frame[22] = 64;
  frame[23] = packet::kProtocolUdp;
  frame[37] = static_cast<std::uint8_t>(index % 10);
  frame[39] = 26;
  frame[50] = static_cast<std::uint8_t>(index);
  pool.set_arrived(slot, 60, index, index * 1000);
}

class ClassifierStageTest : public ::testing::Test {
 protected:
  void make(std::string const& graph, RecordLog* lines = nullptr) {
    table_.emplace(table_of(graph));
    queues_.emplace_back(pool_->arena(), 0);
    std::vector<memory::UnitQueue*> out;
    for (const std::size_t target : table_->targets()) {
      of_target_[target] = queues_.size();
      queues_.emplace_back(pool_->arena(), static_cast<std::uint32_t>(queues_.size()));
    }
    if (!of_target_.contains(chain::kTx)) {
      of_target_[chain::kTx] = queues_.size();
      queues_.emplace_back(pool_->arena(), static_cast<std::uint32_t>(queues_.size()));
    }
    for (const std::size_t target : table_->targets()) {
      out.push_back(&queues_[of_target_[target]]);
    }
    stage_.emplace("rx", *table_, *pool_, queues_[0], out, queues_[of_target_[chain::kTx]], reserve_, lines);
  }
  memory::Unit* push(std::uint32_t packets, std::uint64_t first) {
    memory::Unit* const unit = reserve_.take_one();
    if (unit == nullptr || !pool_->acquire_slots(*unit, packets)) {
      if (unit != nullptr) {
        pool_->release_unit(unit);
      }
      return nullptr;
    }
    unit->count = packets;
    unit->first_index = first;
    unit->end_index = first + packets;
    unit->arrival_ns = 77;
    for (std::uint32_t i = 0; i < packets; ++i) {
      put_numbered(*pool_, unit->slots()[i], first + i);
    }
    queues_[0].push(unit);
    return unit;
  }
  void poll() {
    const Result<Progress> progress = stage_->poll();
    ASSERT_TRUE(progress.ok()) << progress.status();
  }
  memory::Unit* pop(std::size_t target) { return queues_[of_target_[target]].pop(); }
  std::vector<std::uint64_t> numbers(memory::Unit const* unit) const {
    std::vector<std::uint64_t> numbers;
    for (std::uint32_t i = 0; unit != nullptr && i < unit->count; ++i) {
      numbers.push_back(pool_->meta().index[unit->slots()[i]]);
    }
    return numbers;
  }
  void release(memory::Unit* unit) {
    pool_->release_slots(unit->used_slots());
    pool_->release_unit(unit);
  }

  std::unique_ptr<memory::PacketPool> pool_ =
      memory::PacketPool::create(kSlotsToClassify, kPacketsToClassify, 8, 4).value();
  BufferReservation reserve_{*pool_};
  std::optional<chain::NextNodeTable> table_;
  std::deque<memory::UnitQueue> queues_;
  std::map<std::size_t, std::size_t> of_target_;
  std::optional<ClassifierStage> stage_;
};

constexpr std::size_t kA = 0;
constexpr std::size_t kB = 1;

TEST_F(ClassifierStageTest, a_unit_whose_packets_go_one_way_goes_on_as_it_is) {
  make("[{from: rx, match: {protocol: tcp}, to: a}, {from: rx, to: b}]");
  memory::Unit* const unit = push(10, 0);
  poll();
  EXPECT_EQ(pop(kB), unit);
  EXPECT_EQ(pop(kA), nullptr);
  EXPECT_EQ(stage_->sent_to(1), 10U);
}

TEST_F(ClassifierStageTest, packets_that_go_several_ways_are_divided_in_their_order) {
  make(
      "[{from: rx, match: {dport: 3}, to: a}, {from: rx, match: {dport: 0-2}, to: b}, {from: rx, match: {dport: 4}, "
      "to: drop}, {from: rx, match: {dport: 5}, to: tx}]");
  memory::Unit* const pushed = push(20, 0);
  pushed->device_epoch = 9;
  pushed->host_fallback = true;
  const std::vector<std::uint32_t> slots(pushed->used_slots().begin(), pushed->used_slots().end());
  // ended already: to tx, whatever its port says
  pool_->meta().verdict[slots[3]] = static_cast<std::uint8_t>(packet::Verdict::kDrop);
  pool_->meta().verdict[slots[13]] = static_cast<std::uint8_t>(packet::Verdict::kReply);
  poll();
  memory::Unit* const to_b = pop(kB);
  EXPECT_THAT(numbers(to_b), ElementsAre(0, 1, 2, 10, 11, 12));
  EXPECT_EQ(to_b->slots()[3], slots[10]) << "not a copy";
  EXPECT_EQ(to_b->device_epoch, 9U);
  EXPECT_TRUE(to_b->host_fallback);
  EXPECT_EQ(to_b->arrival_ns, 77U);
  EXPECT_EQ(pop(kA), nullptr) << "both for it had ended";
  memory::Unit* const ended = pop(chain::kTx);
  EXPECT_THAT(numbers(ended), ElementsAre(3, 4, 5, 6, 7, 8, 9, 13, 14, 15, 16, 17, 18, 19));
  const auto verdict = [this](std::uint32_t slot) { return static_cast<packet::Verdict>(pool_->meta().verdict[slot]); };
  EXPECT_EQ(verdict(slots[5]), packet::Verdict::kPass);
  EXPECT_EQ(verdict(slots[4]), packet::Verdict::kDrop);
  EXPECT_EQ(verdict(slots[6]), packet::Verdict::kDrop);
  EXPECT_EQ(verdict(slots[13]), packet::Verdict::kReply);
  EXPECT_EQ(stage_->dropped(), 2U);
  EXPECT_EQ(stage_->unmatched(), 8U);
  release(to_b);
  release(ended);
  EXPECT_EQ(pool_->free_units(), pool_->arena().units() - 3) << "empty parts for the next unit";
  queues_[0].close();
  EXPECT_EQ(stage_->poll().value(), Progress::kFinished);
  EXPECT_EQ(pool_->free_units(), pool_->arena().units());
  EXPECT_EQ(pool_->free_slots(), kSlotsToClassify);
  EXPECT_TRUE(queues_[of_target_[kA]].drained());
}

TEST_F(ClassifierStageTest, a_mirror_copies_and_the_packet_goes_on) {
  make(
      "[{from: rx, match: {dport: 0-4}, to: {mirror: a}}, {from: rx, match: {dport: 3}, to: a}, "
      "{from: rx, match: {dport: 9}, to: drop}, {from: rx, match: {dport: 4}, to: {mirror: b}}, {from: rx, to: tx}]");
  memory::Unit* const pushed = push(10, 100);
  pushed->device_epoch = 9;
  pushed->host_fallback = true;
  pool_->meta().port[pushed->slots()[2]] = 5;
  pool_->meta().rewritten[pushed->slots()[2]] = 1;
  const std::vector<std::uint32_t> slots(pushed->used_slots().begin(), pushed->used_slots().end());
  poll();
  memory::Unit* const first = pop(kA);
  memory::Unit* const second = pop(kA);
  EXPECT_THAT(numbers(first), ElementsAre(103)) << "what goes there itself";
  EXPECT_EQ(first->device_epoch, 9U);
  EXPECT_THAT(numbers(second), ElementsAre(100, 101, 102, 103, 104)) << "copies";
  EXPECT_EQ(second->device_epoch, 0U) << "on no device";
  EXPECT_FALSE(second->host_fallback);
  const std::uint32_t copy = second->slots()[2];
  EXPECT_EQ(std::ranges::find(slots, copy), slots.end());
  EXPECT_EQ(pool_->meta().port[copy], 5U);
  EXPECT_EQ(pool_->meta().rewritten[copy], 0U);
  const auto frame = [this](std::uint32_t slot) { return pool_->slot(slot) + pool_->meta().offset[slot]; };
  EXPECT_TRUE(std::equal(frame(copy), frame(copy) + 60, frame(slots[2])));
  frame(copy)[50] = 0xFF;
  EXPECT_EQ(frame(slots[2])[50], 102) << "a slot of its own";
  EXPECT_THAT(numbers(pop(kB)), ElementsAre(104));
  EXPECT_THAT(numbers(pop(chain::kTx)), ElementsAre(100, 101, 102, 104, 105, 106, 107, 108, 109));
  EXPECT_EQ(stage_->mirrored_to(0), 5U);
  EXPECT_EQ(stage_->mirrored_to(1), 1U);
  EXPECT_EQ(stage_->sent_to(0), 1U);
  EXPECT_EQ(stage_->dropped(), 1U);
}

TEST_F(ClassifierStageTest, lines_go_with_the_packets_that_they_are_about) {
  RecordLog lines(pool_->arena());
  make("[{from: rx, match: {dport: 0-4}, to: {mirror: b}}, {from: rx, match: {dport: 3}, to: a}, {from: rx, to: tx}]",
       &lines);
  memory::Unit* const unit = push(10, 0);
  for (std::uint64_t i = 0; i < 10; ++i) {
    lines.of(*unit).arrivals.push_back({.packet = i});
  }
  for (const std::uint64_t packet : {9U, 3U, 4U}) {
    lines.of(*unit).records.push_back({0, {packet, packet::Verdict::kPass, -1, ""}});
  }
  poll();
  const auto packets = [](UnitRecords const& of) {
    std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>> both;
    for (UnitRecord const& record : of.records) {
      both.first.push_back(record.line.packet);
    }
    for (nf::Arrival const& arrival : of.arrivals) {
      both.second.push_back(arrival.packet);
    }
    return both;
  };
  const auto to_a = packets(lines.of(*pop(kA)));
  EXPECT_THAT(to_a.first, ElementsAre(3));
  EXPECT_THAT(to_a.second, ElementsAre(3));
  const auto to_b = packets(lines.of(*pop(kB)));
  EXPECT_THAT(to_b.first, IsEmpty()) << "copies";
  EXPECT_THAT(to_b.second, ElementsAre(0, 1, 2, 3, 4));
  const auto to_tx = packets(lines.of(*pop(chain::kTx)));
  EXPECT_THAT(to_tx.first, ElementsAre(9, 4));
  EXPECT_EQ(to_tx.second.size(), 9U);
  EXPECT_THAT(lines.of(*unit).arrivals, IsEmpty());
}

TEST_F(ClassifierStageTest, copies_never_run_out_of_slots_however_much_waits_in_front) {
  make("[{from: rx, to: {mirror: a}}, {from: rx, to: tx}]");
  std::uint64_t next = 0;
  std::uint64_t sent = 0;
  std::uint64_t copies = 0;
  for (int round = 0; round < 500; ++round) {
    while (push(kPacketsToClassify, next) != nullptr) {  // as much as there is room for
      next += kPacketsToClassify;
    }
    poll();
    std::uint32_t moved = 0;
    for (memory::Unit* unit = pop(chain::kTx); unit != nullptr; unit = pop(chain::kTx)) {
      sent += unit->count;
      moved += unit->count;
      release(unit);
    }
    for (memory::Unit* unit = pop(kA); unit != nullptr; unit = pop(kA)) {
      copies += unit->count;
      release(unit);
    }
    ASSERT_GT(moved, 0U) << "in round " << round;
  }
  EXPECT_EQ(sent, copies);
}

TEST_F(ClassifierStageTest, a_classifier_decides_a_unit_and_moves_no_packet) {
  const chain::NextNodeTable table = table_of(
      "[{from: rx, match: {dport: 0-4}, to: a}, {from: rx, match: {dport: 5}, to: {mirror: a}}, {from: rx, match: "
      "{dport: 5}, to: drop}, {from: rx, to: b}]");
  const std::size_t ended = table.targets().size();
  UnitClassifier classifier(table, table.targets().size(), ended);
  memory::Unit* const unit = pool_->acquire_unit();
  ASSERT_TRUE(pool_->acquire_slots(*unit, 6));
  unit->count = 6;
  const auto put = [&](std::uint64_t first) {
    for (std::uint32_t i = 0; i < 6; ++i) {
      put_numbered(*pool_, unit->slots()[i], first + i);
    }
  };
  const auto at = [&](std::size_t target) {
    return static_cast<std::size_t>(std::ranges::find(table.targets(), target) - table.targets().begin());
  };
  put(6);
  for (std::uint32_t i = 4; i < 6; ++i) {
    put_numbered(*pool_, unit->slots()[i], 9);
  }
  EXPECT_EQ(classifier.decide(pool_->batch(*unit)), at(kB));
  EXPECT_EQ(classifier.sent_to(at(kB)), 6U);

  put(0);
  const packet::Batch packets = pool_->batch(*unit);
  EXPECT_EQ(classifier.decide(packets), std::nullopt);
  EXPECT_EQ(classifier.mirrors(0), 0U);
  EXPECT_EQ(classifier.conclude(0, packets[0]), at(kA));
  EXPECT_EQ(classifier.mirrors(5), std::uint64_t{1} << at(kA));
  EXPECT_EQ(packets[5].verdict(), packet::Verdict::kPass) << "until its copy is made";
  EXPECT_EQ(classifier.dropped(), 0U);
  EXPECT_EQ(classifier.conclude(5, packets[5]), ended);
  EXPECT_EQ(packets[5].verdict(), packet::Verdict::kDrop);
  EXPECT_EQ(classifier.dropped(), 1U);
  release(unit);
}

TEST(UnitQueueOfSeveral, takes_from_all_and_ends_with_the_last) {
  constexpr std::uint32_t kPushers = 3;
  constexpr std::uint32_t kUnits = 200;
  const auto pool = memory::PacketPool::create(kSlotsToClassify, 4, 1).value();
  memory::UnitQueue queue(pool->arena(), 0, kPushers);
  std::vector<std::thread> threads;
  for (std::uint64_t pusher = 0; pusher < kPushers; ++pusher) {
    threads.emplace_back([&, pusher] {
      for (std::uint64_t i = 0; i < kUnits; ++i) {
        memory::Unit* const unit = pool->acquire_unit();
        ASSERT_NE(unit, nullptr);
        unit->first_index = pusher;
        unit->end_index = i;
        queue.push(unit);
      }
      queue.close();
    });
  }
  std::vector<std::uint64_t> next(kPushers);
  while (!queue.drained()) {
    if (memory::Unit* const unit = queue.pop(); unit != nullptr) {
      EXPECT_EQ(unit->end_index, next[unit->first_index]++) << "each one's units in their order";
    }
  }
  EXPECT_THAT(next, ElementsAre(kUnits, kUnits, kUnits));
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace catena::runtime
