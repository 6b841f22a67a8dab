// SPDX-License-Identifier: Apache-2.0
#include "pipeline/unit_joiner.hpp"

#include "io/eal/eal.hpp"
#include "pipeline/host_stages.hpp"
#include "pipeline/test_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace catena::runtime {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t kJoinerSlots = 4096;
constexpr std::uint32_t kJoinerUnit = 64;

class UnitJoinerTest : public ::testing::Test {
 protected:
  UnitJoinerTest() {
    EXPECT_TRUE(eal::start().ok());
    pool_ = memory::PacketPool::create(kJoinerSlots, kJoinerUnit, 1).value();
  }
  memory::Unit* unit_of(std::uint32_t packets, std::uint64_t first_index) {
    memory::Unit* const unit = pool_->acquire_unit();
    EXPECT_TRUE(pool_->acquire_slots(*unit, packets));
    unit->count = packets;
    unit->first_index = first_index;
    unit->end_index = first_index + packets;
    return unit;
  }
  /// As a stage that stalls leaves it.
  void make_units_scarce() {
    while (pool_->free_units() >= pool_->arena().units() / 2) {
      taken_.push_back(pool_->acquire_unit());
    }
  }

  std::shared_ptr<memory::PacketPool> pool_;
  std::vector<memory::Unit*> taken_;
};

TEST_F(UnitJoinerTest, units_leave_at_once_while_there_are_enough) {
  UnitJoiner joiner(*pool_, nullptr);
  EXPECT_FALSE(joiner.is_due()) << "nothing is held";
  memory::Unit* const unit = unit_of(1, 0);
  EXPECT_FALSE(joiner.join(*unit));
  joiner.hold(unit);
  EXPECT_TRUE(joiner.is_due());
  EXPECT_EQ(joiner.take(), unit);
  EXPECT_TRUE(joiner.empty());
}

TEST_F(UnitJoinerTest, scarce_units_are_filled) {
  make_units_scarce();
  UnitJoiner joiner(*pool_, nullptr);
  memory::Unit* const first = unit_of(40, 0);
  memory::Unit* const second = unit_of(24, 41);  // a frame between them was dropped
  std::vector<std::uint32_t> slots(first->used_slots().begin(), first->used_slots().end());
  slots.insert(slots.end(), second->used_slots().begin(), second->used_slots().end());
  const std::uint32_t free_units = pool_->free_units();
  joiner.hold(first);
  EXPECT_FALSE(joiner.is_due());
  EXPECT_TRUE(joiner.join(*second));
  EXPECT_EQ(pool_->free_units(), free_units + 1);
  EXPECT_EQ(std::vector(first->used_slots().begin(), first->used_slots().end()), slots);
  EXPECT_EQ(first->first_index, 0U);
  EXPECT_EQ(first->end_index, 65U);
  EXPECT_TRUE(joiner.is_due()) << "it is full";
}

TEST_F(UnitJoinerTest, units_that_do_not_fit_together_stay_apart) {
  make_units_scarce();
  UnitJoiner joiner(*pool_, nullptr);
  joiner.hold(unit_of(40, 0));
  EXPECT_FALSE(joiner.join(*unit_of(25, 40)));
  memory::Unit* const of_device = unit_of(1, 40);
  of_device->device_epoch = 1;
  EXPECT_FALSE(joiner.join(*of_device)) << "the device has newer data of it";
}

// a branch of a graph may stall, and the others not
TEST_F(UnitJoinerTest, a_unit_waits_for_others_no_longer_than_a_moment) {
  make_units_scarce();
  UnitJoiner joiner(*pool_, nullptr);
  joiner.hold(unit_of(1, 0));
  EXPECT_FALSE(joiner.is_due());
  bool is_due = false;
  for (int i = 0; i < 5000 && !is_due; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    is_due = joiner.is_due();
  }
  EXPECT_TRUE(is_due);
  joiner.take();
  joiner.hold(unit_of(1, 1));
  EXPECT_FALSE(joiner.is_due()) << "each by itself";
}

TEST_F(UnitJoinerTest, arrivals_stay_with_their_packets) {
  make_units_scarce();
  RecordLog lines(pool_->arena());
  UnitJoiner joiner(*pool_, &lines);
  memory::Unit* const first = unit_of(1, 0);
  memory::Unit* const second = unit_of(1, 1);
  lines.of(*first).arrivals.emplace_back().packet = 7;
  lines.of(*second).arrivals.emplace_back().packet = 8;
  joiner.hold(first);
  ASSERT_TRUE(joiner.join(*second));
  std::vector<std::uint64_t> numbers;
  for (nf::Arrival const& arrival : lines.of(*first).arrivals) {
    numbers.push_back(arrival.packet);
  }
  EXPECT_THAT(numbers, ElementsAre(7, 8));
  EXPECT_TRUE(lines.of(*second).arrivals.empty()) << "its next user begins with none";
}

TEST_F(UnitJoinerTest, rx_fills_the_slots_of_a_chain_that_stalls_however_slowly_packets_come) {
  testing::OnePacketSource source;  // as a slow live port
  memory::UnitQueue queue(pool_->arena(), 0);
  std::atomic<bool> stop{false};
  RxStage rx(source, *pool_, queue, stop);
  while (rx.starved_polls() == 0) {
    ASSERT_TRUE(rx.poll().ok());
  }
  EXPECT_GT(rx.packets(), kJoinerSlots * 3 / 4);
}

TEST_F(UnitJoinerTest, rx_keeps_no_packet_back_at_its_end) {
  testing::OnePacketSource source;  // as a slow live port
  memory::UnitQueue queue(pool_->arena(), 0);
  std::atomic<bool> stop{false};
  RxStage rx(source, *pool_, queue, stop);
  make_units_scarce();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(rx.poll().ok());
  }
  stop = true;
  EXPECT_EQ(*rx.poll(), Progress::kFinished);
  std::uint64_t packets = 0;
  while (memory::Unit const* const unit = queue.pop()) {
    packets += unit->count;
  }
  EXPECT_EQ(packets, rx.packets());
  EXPECT_TRUE(queue.drained());
}

}  // namespace
}  // namespace catena::runtime
