// SPDX-License-Identifier: Apache-2.0
#include "base/core/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace catena::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Counter, is_a_number_that_others_may_read) {
  Counter count;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 100'000; ++i) {
      ++count;
    }
    done = true;
  });
  std::uint64_t last = 0;
  while (!done) {
    const std::uint64_t now = count;
    ASSERT_GE(now, last);
    last = now;
  }
  writer.join();
  EXPECT_EQ(count, 100'000U);
  count -= 7;
  --count;
  EXPECT_EQ(count += 2, 99'994U);
  const Counter copy = count;
  count = 3;
  EXPECT_EQ(copy, 99'994U);
  EXPECT_EQ(count, 3U);
}

TEST(Metrics, are_added_up_by_labels) {
  Counter fw;
  Histogram times;
  Registry registry;
  for (const char* shard : {"0", "1"}) {
    registry.add({{"shard", shard}}, [&](Snapshot& snapshot) {
      snapshot.add("drops", {{"nf", "fw"}, {"reason", "rule"}}, fw);
      snapshot.add("drops", {{"nf", "fw"}, {"reason", "short"}}, 1);
      snapshot.add("drops", {{"nf", "ids"}, {"reason", "rule"}}, 10);
      snapshot.add("drops", {}, 500);
      snapshot.add("us", times);
    });
  }
  fw += 100;
  times.add(7, 3);
  const Snapshot snapshot = registry.read();
  fw += 100;
  EXPECT_EQ(snapshot.samples().size(), 8U);
  EXPECT_EQ(snapshot.sum("drops"), 2 * 611U);
  EXPECT_EQ(snapshot.sum("drops", {{"nf", "fw"}}), 202U);
  EXPECT_EQ(snapshot.sum("drops", {{"shard", "1"}, {"nf", "fw"}}), 101U);
  EXPECT_EQ(snapshot.sum("drops", {{"nf", "rt"}}), 0U);
  EXPECT_EQ(snapshot.sum("drop"), 0U);
  EXPECT_THAT(snapshot.sums("drops", "reason", {{"nf", "fw"}}), ElementsAre(Pair("rule", 200), Pair("short", 2)));
  EXPECT_THAT(snapshot.sums("drops", "nf", {{"shard", "0"}}), ElementsAre(Pair("fw", 101), Pair("ids", 10)));
  EXPECT_THAT(snapshot.sums("drops", "port"), IsEmpty());
  EXPECT_EQ(snapshot.times("us").count(), 6U);
  EXPECT_EQ(snapshot.times("us").percentile(50), 7U);
  EXPECT_EQ(snapshot.times("ns").count(), 0U);
  EXPECT_EQ(registry.read().sum("drops", {{"nf", "fw"}}), 402U);
}

TEST(Histogram, may_be_read_while_times_are_added) {
  Histogram times;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < 50'000; ++i) {
      times.add(i % 1000);
    }
    done = true;
  });
  while (!done) {
    const Histogram now = times;
    ASSERT_LE(now.percentile(50), now.percentile(100));
    ASSERT_LT(now.max(), 1000U);
  }
  writer.join();
  EXPECT_EQ(times.count(), 50'000U);
}

}  // namespace
}  // namespace catena::metrics
