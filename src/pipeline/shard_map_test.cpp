// SPDX-License-Identifier: Apache-2.0
#include "pipeline/shard_map.hpp"

#include "pipeline/host_stages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace catena::runtime {
namespace {

constexpr std::uint32_t kSplitSlots = 2048;
constexpr std::uint32_t kSplitUnit = 64;

/// Frames of many flows: UDP of a few hosts.
void put_frame(memory::PacketPool& pool, std::uint32_t slot, std::uint64_t index) {
  std::uint8_t* frame = pool.slot(slot) + packet::kSlotHeadroom;
  std::fill_n(frame, 60, std::uint8_t{0});
  frame[12] = 8;
  frame[14] = 0x45;
  frame[17] = 46;
  frame[22] = 64;
  frame[23] = 17;
  frame[29] = static_cast<std::uint8_t>(index * 7 % 50);
  frame[33] = static_cast<std::uint8_t>(index * 3 % 11);
  frame[35] = static_cast<std::uint8_t>(index % 13);
  frame[39] = 26;
  pool.set_arrived(slot, 60, index, index * 1000);
}

TEST(Splitter, small_units_go_into_one_queue_together_and_none_stays_behind) {
  const auto pool = memory::PacketPool::create(kSplitSlots, kSplitUnit, 1).value();
  memory::UnitQueue queue(pool->arena(), 0);
  Splitter splitter(queue);
  const auto push = [&](std::uint32_t packets) {
    memory::Unit* unit = pool->acquire_unit();
    unit->count = packets;
    splitter.push(unit);
    return unit;
  };
  memory::Unit* const first = push(kSplitUnit);
  EXPECT_TRUE(queue.empty()) << "others may follow at once";
  splitter.flush();
  EXPECT_EQ(queue.pop(), first);
  std::vector<memory::Unit*> units;
  for (std::uint32_t packets = 0; packets < kPacketsAtOnce; packets += kSplitUnit) {
    units.push_back(push(kSplitUnit));
  }
  for (memory::Unit const* unit : units) {
    EXPECT_EQ(queue.pop(), unit) << "enough are together";
  }
  EXPECT_EQ(queue.pop(), nullptr);
  memory::Unit* const last = push(1);
  splitter.close();
  EXPECT_FALSE(queue.drained());
  EXPECT_EQ(queue.pop(), last);
  EXPECT_TRUE(queue.drained());
}

class SplitTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  SplitTest()
      : pool_(memory::PacketPool::create(kSplitSlots, kSplitUnit, 2 * GetParam()).value()),
        reserve_(*pool_),
        order_(pool_->arena().units()),
        lines_(pool_->arena()) {
    for (std::uint32_t i = 0; i < GetParam(); ++i) {
      in_.emplace_back(pool_->arena(), i);
      out_.emplace_back(pool_->arena(), GetParam() + i);
    }
    splitter_.emplace(all(in_), *pool_, &order_, ShardMap(GetParam(), 1), &lines_, reserve_);
    merger_.emplace(all(out_), *pool_, order_, &lines_);
  }
  static std::vector<memory::UnitQueue*> all(std::vector<memory::UnitQueue>& queues) {
    std::vector<memory::UnitQueue*> pointers;
    for (memory::UnitQueue& queue : queues) {
      pointers.push_back(&queue);
    }
    return pointers;
  }
  /// What shard `i` does: nothing with its packets. True if there was a unit.
  bool pass_on(std::uint32_t i) {
    memory::Unit* unit = in_[i].pop();
    if (unit != nullptr) {
      out_[i].push(unit);
    } else if (in_[i].drained()) {
      out_[i].close();
    }
    return unit != nullptr;
  }
  /// A unit of `count` packets; every third number is that of a frame that rx dropped. Null: not now.
  memory::Unit* next_unit(std::uint32_t count) {
    memory::Unit* unit = splitter_->take_unit(*pool_);
    if (unit == nullptr) {
      return nullptr;
    }
    if (!pool_->acquire_slots(*unit, count)) {
      pool_->release_unit(unit);
      return nullptr;
    }
    unit->first_index = next_index_;
    for (std::uint32_t i = 0; i < count; ++i) {
      next_index_ += next_index_ % 3 == 0 ? 1 : 0;
      put_frame(*pool_, unit->slots()[i], next_index_);
      nf::Arrival arrival;
      arrival.packet = next_index_++;
      lines_.of(*unit).arrivals.push_back(std::move(arrival));
    }
    unit->count = count;
    unit->end_index = next_index_;
    unit->arrival_ns = unit->first_index;
    unit->last_arrival_ns = unit->end_index;
    return unit;
  }
  void expect_next(memory::Unit const& unit) {
    EXPECT_EQ(unit.arrival_ns, unit.first_index);
    EXPECT_EQ(unit.last_arrival_ns, unit.end_index);
    std::vector<nf::Arrival> const& arrivals = lines_.of(const_cast<memory::Unit&>(unit)).arrivals;
    ASSERT_EQ(arrivals.size(), unit.count);
    for (std::uint32_t i = 0; i < unit.count; ++i) {
      seen_ += seen_ % 3 == 0 ? 1 : 0;
      ASSERT_EQ(pool_->batch(unit)[i].index(), seen_);
      ASSERT_EQ(arrivals[i].packet, seen_);
      ++seen_;
    }
  }
  void release(memory::Unit* unit) {
    lines_.of(*unit).clear();
    pool_->release_slots(*unit, 0, unit->count);
    pool_->release_unit(unit);
  }

  std::unique_ptr<memory::PacketPool> pool_;
  BufferReservation reserve_;
  SplitOrder order_;
  RecordLog lines_;
  std::vector<memory::UnitQueue> in_;   ///< of each shard
  std::vector<memory::UnitQueue> out_;  ///< likewise
  std::optional<Splitter> splitter_;
  std::optional<Merger> merger_;
  std::uint64_t next_index_ = 0;
  std::uint64_t seen_ = 0;
};

TEST_P(SplitTest, what_is_put_together_again_is_what_was_split) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    memory::Unit* unit = next_unit(1 + random() % kSplitUnit);
    ASSERT_NE(unit, nullptr);
    const std::uint32_t count = unit->count;
    splitter_->push(unit);
    for (std::uint32_t shard = GetParam(); shard-- > 0;) {
      pass_on(shard);
    }
    memory::Unit* whole = merger_->pop();
    ASSERT_NE(whole, nullptr);
    EXPECT_EQ(whole->count, count);
    expect_next(*whole);
    release(whole);
    EXPECT_EQ(merger_->pop(), nullptr);
    EXPECT_FALSE(merger_->drained());
  }
  splitter_->close();
  for (std::uint32_t shard = 0; shard < GetParam(); ++shard) {
    EXPECT_FALSE(merger_->drained());
    pass_on(shard);
  }
  EXPECT_TRUE(merger_->drained());
  EXPECT_EQ(pool_->free_slots(), kSplitSlots);
  EXPECT_EQ(pool_->free_units(), pool_->arena().units());
}

TEST_P(SplitTest, kept_units_are_divided_later_in_their_order_as_far_as_units_are_free) {
  std::uint32_t kept = 0;
  for (memory::Unit* unit = next_unit(5); unit != nullptr; unit = next_unit(5)) {
    splitter_->keep(unit);
    splitter_->flush();
    ++kept;
  }
  EXPECT_GT(kept, 10U);
  EXPECT_FALSE(splitter_->empty());
  for (memory::UnitQueue const& queue : in_) {
    EXPECT_TRUE(queue.empty());
  }
  bool is_done = false;
  for (std::uint32_t round = 0; round < 2 * kept && !(is_done && seen_ == next_index_); ++round) {
    is_done = splitter_->push_kept();
    for (std::uint32_t shard = 0; shard < GetParam(); ++shard) {
      while (pass_on(shard)) {
      }
    }
    while (memory::Unit* whole = merger_->pop()) {
      expect_next(*whole);
      release(whole);
    }
  }
  EXPECT_TRUE(is_done);
  EXPECT_EQ(seen_, next_index_);
  EXPECT_TRUE(splitter_->empty());
  EXPECT_TRUE(splitter_->push_kept()) << "again";
  splitter_->close();
  EXPECT_EQ(pool_->free_units(), pool_->arena().units());
}

TEST_P(SplitTest, packets_keep_their_order_however_fast_shards_are) {
  std::vector<std::thread> shards;
  for (std::uint32_t i = 0; i < GetParam(); ++i) {
    shards.emplace_back([&, i] {
      std::mt19937 random(i);
      while (!in_[i].drained()) {
        if (pass_on(i) && random() % 8 == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
        }
      }
      out_[i].close();
    });
  }
  std::thread rx([&] {
    std::mt19937 random(9);
    for (int units = 0; units < 500;) {
      if (memory::Unit* unit = next_unit(1 + random() % kSplitUnit); unit != nullptr) {
        splitter_->push(unit);
        ++units;
      } else {
        std::this_thread::yield();
      }
    }
    splitter_->close();
  });
  while (!merger_->drained()) {
    if (memory::Unit* whole = merger_->pop(); whole != nullptr) {
      expect_next(*whole);
      release(whole);
    } else {
      std::this_thread::yield();
    }
  }
  rx.join();
  for (std::thread& shard : shards) {
    shard.join();
  }
  EXPECT_EQ(seen_, next_index_);
  EXPECT_EQ(pool_->free_slots(), kSplitSlots);
  EXPECT_EQ(pool_->free_units(), pool_->arena().units());
}

TEST_P(SplitTest, quarantined_parts_come_by_themselves) {
  memory::Unit* unit = next_unit(kSplitUnit);
  splitter_->push(unit);
  std::uint32_t lost = 0;
  for (std::uint32_t i = 0; i < GetParam(); ++i) {
    memory::Unit* part = in_[i].pop();
    ASSERT_NE(part, nullptr) << "the flows are in all shards";
    if (i == 0) {
      part->quarantined = true;
      lost = part->count;
    } else {
      lines_.of(*part).records.push_back({0, {part->first_index, packet::Verdict::kPass, -1, ""}});
    }
    out_[i].push(part);
  }
  memory::Unit* first = merger_->pop();
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->quarantined);
  EXPECT_EQ(first->count, lost);
  EXPECT_EQ(lines_.of(*first).arrivals.size(), GetParam() > 1 ? 0 : kSplitUnit);
  if (GetParam() > 1) {
    memory::Unit* rest = merger_->pop();
    ASSERT_NE(rest, nullptr);
    EXPECT_EQ(lines_.of(*rest).records.size(), GetParam() - 1) << "lines of all parts are written together";
    EXPECT_EQ(lines_.of(*rest).arrivals.size(), kSplitUnit);
    EXPECT_FALSE(rest->quarantined);
    EXPECT_EQ(rest->count, kSplitUnit - lost);
    release(rest);
  }
  EXPECT_EQ(merger_->pop(), nullptr);
  release(first);
}

/// Shards that hand packets over to shards that are divided in another way: rx -> shards -> reshard stage -> shards ->
/// tx, and so on.
class ReshardTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  struct Shape {
    std::uint32_t slots;
    std::uint32_t unit_packets;
    std::uint32_t parts;  ///< that the pool has units for
    std::uint32_t sections;
  };
  /// The stages of such a chain.
  struct Chain {
    Chain(Shape const& of, std::uint32_t shards) : shape(of) {
      const std::uint32_t count = 2 * shape.sections * shards;
      pool = memory::PacketPool::create(shape.slots, shape.unit_packets, count, shape.parts).value();
      reserve.emplace(*pool);
      queues.resize(2 * shape.sections);
      for (std::uint32_t i = 0; i < count; ++i) {
        queues[i / shards].emplace_back(pool->arena(), i);
      }
      for (std::uint32_t section = 0; section < shape.sections; ++section) {
        orders.emplace_back(pool->arena().units());
        Splitter splitter(all(queues[2 * section]), *pool, &orders.back(), ShardMap(shards, section + 1), nullptr,
                          *reserve);
        if (section == 0) {
          rx.emplace(std::move(splitter));
        } else {
          reshard_stages.emplace_back(*pool, Merger(all(queues[2 * section - 1]), *pool, orders[section - 1], nullptr),
                                      std::move(splitter));
        }
      }
      tx.emplace(all(queues.back()), *pool, orders.back(), nullptr);
    }
    static std::vector<memory::UnitQueue*> all(std::vector<memory::UnitQueue>& queues) {
      std::vector<memory::UnitQueue*> pointers;
      for (memory::UnitQueue& queue : queues) {
        pointers.push_back(&queue);
      }
      return pointers;
    }
    /// A unit of at most `most` packets. False: not now.
    bool receive(std::uint32_t most) {
      memory::Unit* unit = rx->take_unit(*pool);
      const auto count = static_cast<std::uint32_t>(1 + random() % most);
      if (unit == nullptr || !pool->acquire_slots(*unit, count)) {
        if (unit != nullptr) {
          pool->release_unit(unit);
        }
        return false;
      }
      unit->count = count;
      for (const std::uint32_t slot : unit->used_slots()) {
        put_frame(*pool, slot, received++);
      }
      rx->push(unit);
      return true;
    }
    bool pass(std::size_t section, std::size_t shard) {
      memory::UnitQueue& in = queues[2 * section][shard];
      memory::UnitQueue& out = queues[2 * section + 1][shard];
      if (memory::Unit* unit = in.pop(); unit != nullptr) {
        out.push(unit);
        return true;
      }
      if (in.drained()) {
        out.close();
      }
      return false;
    }
    bool send() {
      memory::Unit* unit = tx->pop();
      if (unit == nullptr) {
        return false;
      }
      for (std::uint32_t i = 0; i < unit->count; ++i) {
        EXPECT_EQ(pool->batch(*unit)[i].index(), sent++) << "order is that of arrival";
      }
      pool->release_slots(*unit, 0, unit->count);
      pool->release_unit(unit);
      return true;
    }
    void expect_nothing_left() const {
      EXPECT_EQ(sent, received);
      EXPECT_EQ(pool->free_slots(), shape.slots);
      EXPECT_EQ(pool->free_units(), pool->arena().units());
    }

    Shape shape;
    std::mt19937 random{5};
    std::unique_ptr<memory::PacketPool> pool;
    std::optional<BufferReservation> reserve;
    std::vector<std::vector<memory::UnitQueue>> queues;
    std::deque<SplitOrder> orders;
    std::optional<Splitter> rx;
    std::deque<ReshardStage> reshard_stages;
    std::optional<Merger> tx;
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
  };
};

TEST_P(ReshardTest, keeps_the_order_of_arrival) {
  constexpr std::uint32_t kSections = 3;
  constexpr std::uint64_t kSplitPackets = 30'000;
  Chain chain({2048, 64, GetParam(), kSections}, GetParam());
  std::vector<std::thread> threads;
  const auto until_done = [&threads](auto poll) {
    threads.emplace_back([poll] {
      while (!poll()) {
        std::this_thread::yield();
      }
    });
  };
  for (std::size_t section = 0; section < kSections; ++section) {
    until_done([&chain, section] {
      bool done = true;
      for (std::size_t shard = 0; shard < GetParam(); ++shard) {
        done = done && chain.queues[2 * section][shard].drained();  // first: the last pass() has to see it
        chain.pass(section, shard);
      }
      return done;
    });
  }
  for (ReshardStage& reshard : chain.reshard_stages) {
    until_done([&reshard] { return reshard.poll().value() == Progress::kFinished; });
  }
  until_done([&chain] {
    if (chain.received < kSplitPackets) {
      chain.receive(64);
      return false;
    }
    chain.rx->close();
    return true;
  });
  while (!chain.tx->drained()) {
    if (!chain.send()) {
      std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  chain.expect_nothing_left();
}

/// Every stage of the last section has just done what there was when rx takes all that it may.
TEST_P(ReshardTest, continues_where_rx_takes_all_units_while_those_behind_it_have_none) {
  Chain chain({32768, 1024, 1, 3}, GetParam());
  const auto pass = [&chain](std::size_t section) {
    for (std::size_t shard = 0; shard < GetParam(); ++shard) {
      while (chain.pass(section, shard)) {
      }
    }
  };
  ASSERT_TRUE(chain.receive(64));
  pass(0);
  ASSERT_EQ(chain.reshard_stages[0].poll().value(), Progress::kWorked);
  pass(1);
  ASSERT_EQ(chain.reshard_stages[1].poll().value(), Progress::kWorked);
  pass(2);
  ASSERT_TRUE(chain.send());
  while (chain.receive(64)) {
  }
  pass(0);
  EXPECT_EQ(chain.reshard_stages[1].poll().value(), Progress::kIdle)
      << "it has no packets, and takes what it needs for some";
  EXPECT_EQ(chain.reshard_stages[0].poll().value(), Progress::kWorked);
}

/// More slots than parts can have, and stages that are asked in an order of no good will.
TEST_P(ReshardTest, continues_where_units_are_scarce) {
  constexpr std::uint64_t kSplitPackets = 20'000;
  for (const std::uint32_t sections : {1U, 2U, 3U, 4U}) {
    Chain chain({32768, 1024, 1, sections}, GetParam());
    std::vector<std::function<bool()>> stages;
    stages.emplace_back([&chain] { return chain.received < kSplitPackets && chain.receive(64); });
    for (std::size_t section = 0; section < sections; ++section) {
      stages.emplace_back([&chain, section] {
        bool worked = false;
        for (std::size_t shard = 0; shard < GetParam(); ++shard) {
          worked = chain.pass(section, shard) || worked;
        }
        return worked;
      });
    }
    for (ReshardStage& reshard : chain.reshard_stages) {
      stages.emplace_back([&reshard] { return reshard.poll().value() == Progress::kWorked; });
    }
    stages.emplace_back([&chain] { return chain.send(); });
    const auto moves = [](std::function<bool()> const& stage) { return stage(); };
    for (std::uint32_t idle = 0; idle < 1000;) {
      // a few times, or until it is stuck
      std::function<bool()> const& any = stages[chain.random() % stages.size()];
      for (auto polls = chain.random() % 2 == 0 ? 1 + chain.random() % 3 : 10'000; polls != 0 && any(); --polls) {
        idle = 0;
      }
      ++idle;
    }
    EXPECT_GE(chain.received, kSplitPackets) << sections << " sections: nothing moves any more";
    chain.rx->close();
    for (std::uint32_t i = 0; i < 100; ++i) {
      std::count_if(stages.begin(), stages.end(), moves);
    }
    chain.expect_nothing_left();
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, ReshardTest, ::testing::Values(2U, 3U, 8U, 16U));

INSTANTIATE_TEST_SUITE_P(Shards, SplitTest, ::testing::Values(1U, 2U, 3U, 8U, 16U));

}  // namespace
}  // namespace catena::runtime
