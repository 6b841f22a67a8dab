// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace catena::copy {
namespace {

using packet::Verdict;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RowsTest : public ::testing::Test {
 protected:
  packet::Batch unit(std::vector<std::uint32_t> slots) {
    units_.push_back(std::move(slots));
    return {nullptr, meta_, units_.back()};
  }
  void set(std::uint32_t slot, Verdict verdict) { verdicts_[slot] = static_cast<std::uint8_t>(verdict); }

  std::array<std::uint8_t, 64> verdicts_{};
  packet::MetaColumns meta_{nullptr, nullptr, nullptr, verdicts_.data(), nullptr, nullptr, nullptr, nullptr};
  std::vector<std::vector<std::uint32_t>> units_ = [] {
    std::vector<std::vector<std::uint32_t>> units;
    units.reserve(16);  // batches point into them
    return units;
  }();
};

std::vector<std::uint32_t> slots_of(packet::Batch const& batch) { return {batch.slots().begin(), batch.slots().end()}; }

std::vector<std::pair<std::uint32_t, std::uint32_t>> runs_of(Rows const& rows) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> runs;
  for (SlotRun const& run : rows.own()) {
    runs.emplace_back(run.first, run.slots);
  }
  return runs;
}

TEST_F(RowsTest, those_that_are_decided_come_first_in_the_order_of_their_units) {
  Rows rows({.passed = true});
  rows.add(unit({0, 1, 2, 3}), std::vector<std::uint32_t>{1, 3});
  rows.add(unit({9, 8, 7}), std::vector<std::uint32_t>{9, 8, 7});
  rows.add(unit({20, 21}), std::vector<std::uint32_t>{});
  EXPECT_EQ(rows.units(), 3U);
  EXPECT_EQ(rows.decided(), 5U);
  EXPECT_THAT(slots_of(rows.decided(1)), ElementsAre(9, 8, 7));
  rows.arrange();
  EXPECT_THAT(rows.slots(), ElementsAre(1, 3, 9, 8, 7, 0, 2, 20, 21));
  EXPECT_EQ(rows.size(), 9U);
  EXPECT_EQ(rows.decided(), 5U);
  EXPECT_THAT(slots_of(rows.decided(0)), ElementsAre(1, 3));
  EXPECT_EQ(rows.first_decided(1), 2U);
  EXPECT_THAT(slots_of(rows.decided(2)), IsEmpty());
  EXPECT_THAT(slots_of(rows.passed(0)), ElementsAre(0, 2));
  EXPECT_EQ(rows.first_passed(0), 5U);
  EXPECT_THAT(slots_of(rows.passed(1)), IsEmpty());
  EXPECT_THAT(slots_of(rows.passed(2)), ElementsAre(20, 21));
  EXPECT_EQ(rows.first_passed(2), 7U);
  EXPECT_THAT(slots_of(rows.unit(0)), ElementsAre(0, 1, 2, 3));
}

TEST_F(RowsTest, a_row_is_of_the_unit_that_it_came_with) {
  Rows rows({});
  rows.add(unit({0, 1}), std::vector<std::uint32_t>{0, 1});
  rows.add(unit({2}), std::vector<std::uint32_t>{});
  rows.add(unit({3, 4}), std::vector<std::uint32_t>{4});
  EXPECT_EQ(rows.unit_of(0), 0U);
  EXPECT_EQ(rows.unit_of(1), 0U);
  EXPECT_EQ(rows.unit_of(2), 2U);
}

TEST_F(RowsTest, packets_whose_way_has_ended_have_no_row) {
  set(1, Verdict::kDrop);
  set(2, Verdict::kReply);
  set(3, Verdict::kAlert);
  Rows rows({.passed = true});
  rows.add(unit({0, 1, 2, 3}), std::vector<std::uint32_t>{0});
  rows.arrange();
  EXPECT_THAT(rows.slots(), ElementsAre(0, 3));
}

TEST_F(RowsTest, a_launch_that_asks_for_no_others_has_those_that_are_decided_alone) {
  Rows rows({});
  rows.add(unit({0, 1, 2}), std::vector<std::uint32_t>{1});
  rows.arrange();
  EXPECT_THAT(rows.slots(), ElementsAre(1));
  EXPECT_THAT(rows.own(), IsEmpty());
}

TEST_F(RowsTest, own_slots_are_whole_units_as_runs) {
  set(5, Verdict::kDrop);  // its slot is the launch's all the same
  Rows rows({.passed = true, .runs = true});
  rows.add(unit({4, 5, 6}), std::vector<std::uint32_t>{4});
  rows.add(unit({7, 8}), std::vector<std::uint32_t>{});
  rows.add(unit({20, 22, 23}), std::vector<std::uint32_t>{20, 22, 23});
  rows.add(unit({}), std::vector<std::uint32_t>{});
  EXPECT_THAT(runs_of(rows), ElementsAre(std::pair(4U, 5U), std::pair(20U, 1U), std::pair(22U, 2U)));
}

TEST_F(RowsTest, the_slot_of_a_reply_is_nobodys_to_write_to) {
  set(5, Verdict::kReply);
  Rows rows({.passed = true, .runs = true});
  rows.add(unit({4, 5, 6, 7}), std::vector<std::uint32_t>{4, 6, 7});
  EXPECT_THAT(runs_of(rows), ElementsAre(std::pair(4U, 1U), std::pair(6U, 2U)));
}

TEST_F(RowsTest, the_next_batch_begins_with_none) {
  Rows rows({.passed = true, .runs = true});
  rows.reserve(8);
  EXPECT_FALSE(rows.has_any());
  rows.add(unit({1, 2, 3}), std::vector<std::uint32_t>{});
  EXPECT_TRUE(rows.has_any()) << "before they are arranged, too";
  rows.arrange();
  rows.clear();
  EXPECT_FALSE(rows.has_any());
  EXPECT_EQ(rows.units(), 0U);
  EXPECT_EQ(rows.decided(), 0U);
  rows.add(unit({5}), std::vector<std::uint32_t>{5});
  rows.arrange();
  EXPECT_THAT(rows.slots(), ElementsAre(5));
  EXPECT_THAT(runs_of(rows), ElementsAre(std::pair(5U, 1U)));
}

}  // namespace
}  // namespace catena::copy
