// SPDX-License-Identifier: Apache-2.0
#include "runtime/split.hpp"

#include "runtime/host_stages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace catena::runtime {
namespace {

constexpr std::uint32_t kSlots = 2048;
constexpr std::uint32_t kUnitPackets = 64;

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

class SplitTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  SplitTest()
      : pool_(memory::PacketPool::create(kSlots, kUnitPackets, 2 * GetParam()).value()),
        order_(pool_->arena().units()),
        lines_(pool_->arena()) {
    for (std::uint32_t i = 0; i < GetParam(); ++i) {
      in_.emplace_back(pool_->arena(), i);
      out_.emplace_back(pool_->arena(), GetParam() + i);
    }
    splitter_.emplace(all(in_), *pool_, order_, Division(GetParam(), 1), &lines_);
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
    memory::Unit* unit = splitter_->is_ready() ? pool_->acquire_unit() : nullptr;
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
    return unit;
  }
  void expect_next(memory::Unit const& unit) {
    EXPECT_EQ(unit.arrival_ns, unit.first_index);
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
  SplitOrder order_;
  LineBook lines_;
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
    memory::Unit* unit = next_unit(1 + random() % kUnitPackets);
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
  EXPECT_EQ(pool_->free_slots(), kSlots);
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
      if (memory::Unit* unit = next_unit(1 + random() % kUnitPackets); unit != nullptr) {
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
  EXPECT_EQ(pool_->free_slots(), kSlots);
  EXPECT_EQ(pool_->free_units(), pool_->arena().units());
}

TEST_P(SplitTest, quarantined_parts_come_by_themselves) {
  memory::Unit* unit = next_unit(kUnitPackets);
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
  EXPECT_EQ(lines_.of(*first).arrivals.size(), GetParam() > 1 ? 0 : kUnitPackets);
  if (GetParam() > 1) {
    memory::Unit* rest = merger_->pop();
    ASSERT_NE(rest, nullptr);
    EXPECT_EQ(lines_.of(*rest).records.size(), GetParam() - 1) << "lines of all parts are written together";
    EXPECT_EQ(lines_.of(*rest).arrivals.size(), kUnitPackets);
    EXPECT_FALSE(rest->quarantined);
    EXPECT_EQ(rest->count, kUnitPackets - lost);
    release(rest);
  }
  EXPECT_EQ(merger_->pop(), nullptr);
  release(first);
}

/// Shards that hand packets over to shards that are divided in another way: rx -> shards -> hand-over -> shards -> tx.
class HandOverTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  void run(std::uint32_t slots, std::uint32_t unit_packets, std::uint32_t packets) {
    const std::uint32_t shards = GetParam();
    const auto pool = memory::PacketPool::create(slots, unit_packets, 4 * shards, shards).value();
    SplitOrder first_order(pool->arena().units());
    SplitOrder second_order(pool->arena().units());
    std::vector<std::vector<memory::UnitQueue>> queues(4);
    for (std::uint32_t i = 0; i < 4 * shards; ++i) {
      queues[i / shards].emplace_back(pool->arena(), i);
    }
    Splitter rx(all(queues[0]), *pool, first_order, Division(shards, 1), nullptr, shards);
    HandOverStage hand_over(*pool, Merger(all(queues[1]), *pool, first_order, nullptr),
                            Splitter(all(queues[2]), *pool, second_order, Division(shards, 2), nullptr));
    Merger tx(all(queues[3]), *pool, second_order, nullptr);
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < 2 * shards; ++i) {
      threads.emplace_back(pass_all, std::ref(queues[i / shards * 2][i % shards]),
                           std::ref(queues[i / shards * 2 + 1][i % shards]));
    }
    threads.emplace_back([&] {
      for (Result<Progress> progress = Progress::kIdle; progress.ok() && *progress != Progress::kFinished;) {
        progress = hand_over.poll();
        EXPECT_TRUE(progress.ok()) << progress.status();
      }
    });
    threads.emplace_back([&] { receive(*pool, rx, packets); });
    std::uint64_t next = 0;
    while (!tx.drained()) {
      if (memory::Unit* unit = tx.pop(); unit != nullptr) {
        for (std::uint32_t i = 0; i < unit->count; ++i) {
          ASSERT_EQ(pool->batch(*unit)[i].index(), next++) << "order is that of arrival";
        }
        pool->release_slots(*unit, 0, unit->count);
        pool->release_unit(unit);
      } else {
        std::this_thread::yield();
      }
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(next, packets);
    EXPECT_EQ(pool->free_slots(), slots);
    EXPECT_EQ(pool->free_units(), pool->arena().units());
  }

 private:
  static std::vector<memory::UnitQueue*> all(std::vector<memory::UnitQueue>& queues) {
    std::vector<memory::UnitQueue*> pointers;
    for (memory::UnitQueue& queue : queues) {
      pointers.push_back(&queue);
    }
    return pointers;
  }
  static void pass_all(memory::UnitQueue& in, memory::UnitQueue& out) {
    while (!in.drained()) {
      if (memory::Unit* unit = in.pop(); unit != nullptr) {
        out.push(unit);
      } else {
        std::this_thread::yield();
      }
    }
    out.close();
  }
  static void receive(memory::PacketPool& pool, Splitter& rx, std::uint32_t packets) {
    std::mt19937 random(5);
    for (std::uint64_t index = 0; index < packets;) {
      const auto count =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(1 + random() % pool.unit_packets(), packets - index));
      memory::Unit* unit = rx.is_ready() && pool.free_units() > rx.units_spare() ? pool.acquire_unit() : nullptr;
      if (unit == nullptr || !pool.acquire_slots(*unit, count)) {
        if (unit != nullptr) {
          pool.release_unit(unit);
        }
        std::this_thread::yield();
        continue;
      }
      unit->count = count;
      for (const std::uint32_t slot : unit->used_slots()) {
        put_frame(pool, slot, index++);
      }
      rx.push(unit);
    }
    rx.close();
  }
};

TEST_P(HandOverTest, keeps_the_order_of_arrival) { run(2048, 64, 50'000); }

TEST_P(HandOverTest, goes_on_where_units_are_scarce) { run(512, 256, 20'000); }

INSTANTIATE_TEST_SUITE_P(Shards, HandOverTest, ::testing::Values(2U, 3U, 8U, 16U));

INSTANTIATE_TEST_SUITE_P(Shards, SplitTest, ::testing::Values(1U, 2U, 3U, 8U, 16U));

}  // namespace
}  // namespace catena::runtime
