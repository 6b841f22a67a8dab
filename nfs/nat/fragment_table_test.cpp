// SPDX-License-Identifier: Apache-2.0
#include "fragment_table.hpp"

#include <gtest/gtest.h>

#include <array>

namespace catena::nat {
namespace {

DatagramKey key(std::uint16_t id) { return {0x0A000001, 0x08080808, id, 17}; }

TEST(FragmentTable, a_datagram_is_known_by_all_four_parts_of_its_key) {
  FragmentTable table(4);
  table.remember(key(1), {11, 12}, 0);
  ASSERT_TRUE(table.find(key(1), 0).has_value());
  EXPECT_EQ(table.find(key(1), 0)->source, 11U);
  EXPECT_EQ(table.find(key(1), 0)->destination, 12U);
  EXPECT_FALSE(table.find({0x0A000002, 0x08080808, 1, 17}, 0).has_value());
  EXPECT_FALSE(table.find({0x0A000001, 0x08080809, 1, 17}, 0).has_value());
  EXPECT_FALSE(table.find(key(2), 0).has_value());
  EXPECT_FALSE(table.find({0x0A000001, 0x08080808, 1, 6}, 0).has_value());
}

TEST(FragmentTable, it_is_known_for_thirty_seconds_after_the_last_first_fragment) {
  FragmentTable table(4);
  table.remember(key(1), {1, 1}, 100);
  EXPECT_TRUE(table.find(key(1), 130).has_value());
  EXPECT_FALSE(table.find(key(1), 131).has_value());
  table.remember(key(1), {2, 2}, 120);
  ASSERT_TRUE(table.find(key(1), 150).has_value());
  EXPECT_EQ(table.find(key(1), 150)->source, 2U);
}

TEST(FragmentTable, the_oldest_makes_room_and_is_counted_only_while_it_is_current) {
  FragmentTable table(4);
  for (std::uint16_t id = 0; id < 5; ++id) {
    table.remember(key(id), {id, id}, 0);
  }
  EXPECT_EQ(table.evicted(), 1U);
  EXPECT_FALSE(table.find(key(0), 0).has_value());
  for (std::uint16_t id = 1; id < 5; ++id) {
    EXPECT_TRUE(table.find(key(id), 0).has_value()) << id;
  }
  for (std::uint16_t id = 10; id < 14; ++id) {
    table.remember(key(id), {id, id}, 31);
  }
  EXPECT_EQ(table.evicted(), 1U) << "those were too old anyway";
}

TEST(FragmentTable, the_same_datagram_over_and_over_stays_findable) {
  FragmentTable table(4);
  for (std::uint32_t i = 0; i < 100; ++i) {
    table.remember(key(7), {i, i}, i);
    ASSERT_TRUE(table.find(key(7), i).has_value());
    EXPECT_EQ(table.find(key(7), i)->source, i);
  }
  EXPECT_EQ(table.evicted(), 0U);
}

TEST(FragmentTable, of_several_tables_the_latest_datagrams_are_taken_over) {
  FragmentTable busy(4);
  FragmentTable idle(4);
  for (std::uint16_t id = 0; id < 4; ++id) {
    idle.remember(key(id), {id, id}, id);
    busy.remember(key(static_cast<std::uint16_t>(10 + id)), {id, id}, 100U + id);
  }
  FragmentTable table(4);
  const std::array<FragmentTable const*, 2> before{&busy, &idle};
  table.take_over(before);
  for (std::uint16_t id = 0; id < 4; ++id) {
    EXPECT_TRUE(table.find(key(static_cast<std::uint16_t>(10 + id)), 103).has_value()) << id;
  }
  EXPECT_EQ(table.evicted(), 0U) << "those were too old anyway";
}

}  // namespace
}  // namespace catena::nat
