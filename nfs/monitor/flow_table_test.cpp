// SPDX-License-Identifier: Apache-2.0
#include "flow_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>
#include <set>

#include "monitor_testing.hpp"

namespace catena::monitor {
namespace {

packet::Ipv4FlowKey key_of(std::uint32_t number) { return testing::key(number, ~number, 1, 2, 17); }

TEST(FlowTable, of_one_flow_works) {
  FlowTable table = std::move(*FlowTable::create(1));
  EXPECT_EQ(table.oldest(), FlowTable::kNone);
  for (std::uint32_t round = 0; round < 3; ++round) {
    const std::uint64_t hash = table.hash(key_of(round));
    EXPECT_EQ(table.find(key_of(round), hash), FlowTable::kNone);
    const std::uint32_t flow = table.insert(key_of(round), hash, round);
    EXPECT_TRUE(table.full());
    EXPECT_EQ(table.find(key_of(round), hash), flow);
    EXPECT_EQ(table.oldest(), flow);
    table.erase(flow);
    EXPECT_EQ(table.size(), 0U);
  }
}

// A list kept in order of use, and searched from end to end, is the definition of what the table does.
TEST(FlowTable, does_what_a_plain_list_in_order_of_use_does) {
  constexpr std::uint32_t kCapacity = 100;
  FlowTable table = std::move(*FlowTable::create(kCapacity));
  std::list<std::uint32_t> in_order;  // least recently used first
  auto random = [engine = std::mt19937(1)]() mutable { return static_cast<std::uint32_t>(engine()); };
  for (std::uint64_t step = 0; step < 100'000; ++step) {
    const std::uint32_t number = random() % 300;
    const std::uint64_t hash = table.hash(key_of(number));
    table.prefetch_flow(hash);
    table.prefetch_order(key_of(number), hash);
    const std::uint32_t flow = table.find(key_of(number), hash);
    const auto expected = std::find(in_order.begin(), in_order.end(), number);
    ASSERT_EQ(flow != FlowTable::kNone, expected != in_order.end()) << step;
    if (flow == FlowTable::kNone) {
      ASSERT_EQ(table.full(), in_order.size() == kCapacity);
      if (table.full()) {
        ASSERT_EQ(table[table.oldest()].key, key_of(in_order.front()));
        table.erase(table.oldest());
        in_order.pop_front();
      }
      const std::uint32_t added = table.insert(key_of(number), hash, step);
      ASSERT_EQ(table[added].packets, 0U);
      ASSERT_EQ(table[added].started_ns, step);
      in_order.push_back(number);
    } else if (random() % 4 == 0) {
      table.erase(flow);
      in_order.erase(expected);
    } else {
      table.touch(flow, step);
      ASSERT_EQ(table.used_ns(flow), step);
      in_order.splice(in_order.end(), in_order, expected);
    }
    ASSERT_EQ(table.size(), in_order.size());
  }
  while (!in_order.empty()) {
    ASSERT_EQ(table[table.oldest()].key, key_of(in_order.front()));
    table.erase(table.oldest());
    in_order.pop_front();
  }
  EXPECT_EQ(table.oldest(), FlowTable::kNone);
}

TEST(FlowTable, keys_that_follow_each_other_have_hashes_that_do_not) {
  const FlowTable table = std::move(*FlowTable::create(1));
  std::set<std::uint64_t> low_bits;
  constexpr std::uint32_t kKeys = 65'536;
  for (std::uint32_t number = 0; number < kKeys; ++number) {
    low_bits.insert(table.hash(testing::key(0x0A000000 + number, 0x0B000000, 1024, 80, 6)) % kKeys);
  }
  // of random values, 1 - 1/e are distinct: 41,427, with a deviation of about 100
  EXPECT_GT(low_bits.size(), 40'500U);
  EXPECT_LT(low_bits.size(), 42'500U);
}

TEST(FlowTable, two_tables_hash_differently) {
  const FlowTable one = std::move(*FlowTable::create(1));
  const FlowTable other = std::move(*FlowTable::create(1));
  EXPECT_NE(one.hash(key_of(1)), other.hash(key_of(1)));
}

TEST(FlowTable, reserves_less_than_a_hundred_bytes_a_flow) {
  const FlowTable table = std::move(*FlowTable::create(1'000'000));
  EXPECT_GE(table.memory_bytes(), 80'000'000U);
  EXPECT_LE(table.memory_bytes(), 100'000'000U);
}

}  // namespace
}  // namespace catena::monitor
