// SPDX-License-Identifier: Apache-2.0
#include "top_talkers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace catena::monitor {
namespace {

using ::testing::SizeIs;

std::vector<Talker> top(TopTalkers const& talkers, std::size_t count) {
  const std::shared_ptr<const TopTalkers> part(std::shared_ptr<void>(), &talkers);
  return top_of(std::span(&part, 1), count);
}

void expect_talker(Talker const& talker, std::uint32_t src, std::uint32_t dst, std::uint64_t packets,
                   std::uint64_t bytes, std::uint64_t excess = 0) {
  EXPECT_EQ(talker.src, src);
  EXPECT_EQ(talker.dst, dst);
  EXPECT_EQ(talker.packets, packets);
  EXPECT_EQ(talker.bytes, bytes);
  EXPECT_EQ(talker.excess_bytes, excess);
}

TEST(TopTalkers, adds_up_by_source_and_destination_and_sorts_by_bytes) {
  TopTalkers talkers(10);
  talkers.add(1, 2, 3, 100);
  talkers.add(2, 1, 1, 1000);
  talkers.add(1, 2, 1, 950);
  talkers.add(5, 6, 9, 10);
  const auto best = top(talkers, 2);
  ASSERT_THAT(best, SizeIs(2));
  expect_talker(best[0], 1, 2, 4, 1050);
  expect_talker(best[1], 2, 1, 1, 1000);
  EXPECT_THAT(top(talkers, 0), SizeIs(0));
  EXPECT_THAT(top(talkers, 99), SizeIs(3));
}

TEST(TopTalkers, equal_ones_stand_in_the_order_of_their_addresses) {
  TopTalkers talkers(10);
  talkers.add(2, 1, 1, 10);
  talkers.add(1, 9, 1, 10);
  talkers.add(1, 3, 1, 10);
  const auto best = top(talkers, 3);
  expect_talker(best[0], 1, 3, 1, 10);
  expect_talker(best[1], 1, 9, 1, 10);
  expect_talker(best[2], 2, 1, 1, 10);
}

// The example of the algorithm: a new element takes the counter of the smallest one, which bounds its error.
TEST(TopTalkers, a_new_pair_takes_over_the_smallest_counter_and_says_so) {
  TopTalkers talkers(2);
  talkers.add(1, 1, 5, 500);
  talkers.add(2, 2, 1, 30);
  talkers.add(3, 3, 1, 40);
  const auto best = top(talkers, 2);
  ASSERT_THAT(best, SizeIs(2));
  expect_talker(best[0], 1, 1, 5, 500);
  expect_talker(best[1], 3, 3, 2, 70, 30);
}

TEST(TopTalkers, is_exact_while_all_pairs_have_a_counter) {
  TopTalkers talkers(1000);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> expected;
  auto random = [engine = std::mt19937(5)]() mutable { return static_cast<std::uint32_t>(engine()); };
  for (int i = 0; i < 50'000; ++i) {
    const std::uint32_t src = random() % 40;
    const std::uint32_t dst = random() % 25;
    const std::uint32_t bytes = random() % 1500;
    talkers.add(src, dst, 1, bytes);
    expected[{src, dst}] += bytes;
  }
  const auto best = top(talkers, 1000);
  ASSERT_EQ(best.size(), expected.size());
  for (std::size_t i = 0; i < best.size(); ++i) {
    ASSERT_EQ(best[i].bytes, (expected[{best[i].src, best[i].dst}])) << i;
    ASSERT_EQ(best[i].excess_bytes, 0U);
    ASSERT_TRUE(i == 0 || best[i - 1].bytes >= best[i].bytes);
  }
}

// Theorems of the paper: counts are never too small, too large by the excess at most, and nobody with more than
// 1/counters of the total is missing.
TEST(TopTalkers, keeps_its_bounds_with_far_more_pairs_than_counters) {
  constexpr std::size_t kCounters = 100;
  TopTalkers talkers(kCounters);
  std::map<std::uint32_t, std::uint64_t> expected;
  std::uint64_t total = 0;
  auto random = [engine = std::mt19937(6)]() mutable { return static_cast<std::uint32_t>(engine()); };
  for (int i = 0; i < 100'000; ++i) {
    const std::uint32_t src = random() % 3 == 0 ? random() % 20 : 100 + random() % 50'000;
    const std::uint32_t bytes = 40 + random() % 1460;
    talkers.add(src, 1, 1, bytes);
    expected[src] += bytes;
    total += bytes;
  }
  std::map<std::uint32_t, Talker> kept;
  for (Talker const& talker : top(talkers, kCounters)) {
    kept[talker.src] = talker;
    ASSERT_GE(talker.bytes, expected[talker.src]);
    ASSERT_LE(talker.bytes - talker.excess_bytes, expected[talker.src]);
    ASSERT_LE(talker.excess_bytes, total / kCounters);
  }
  int heavy = 0;
  for (auto const& [src, bytes] : expected) {
    if (bytes > total / kCounters) {
      ++heavy;
      ASSERT_TRUE(kept.contains(src)) << src;
    }
  }
  EXPECT_EQ(heavy, 20);
}

/// The same traffic in one and in three parts, with `counters` each.
struct Divided {
  explicit Divided(std::size_t counters) : whole(counters) {
    std::vector<std::shared_ptr<TopTalkers>> made;
    for (int i = 0; i < 3; ++i) {
      made.push_back(std::make_shared<TopTalkers>(counters));
    }
    auto random = [engine = std::mt19937(7)]() mutable { return static_cast<std::uint32_t>(engine()); };
    for (int i = 0; i < 60'000; ++i) {
      const std::uint32_t src = random() % 3 == 0 ? random() % 20 : 100 + random() % 2'000;
      const std::uint32_t bytes = 40 + random() % 1460;
      made[random() % 3]->add(src, 1, 2, bytes);
      whole.add(src, 1, 2, bytes);
      expected[src] += bytes;
      total += bytes;
    }
    parts.assign(made.begin(), made.end());
  }
  TopTalkers whole;
  std::vector<std::shared_ptr<const TopTalkers>> parts;
  std::map<std::uint32_t, std::uint64_t> expected;
  std::uint64_t total = 0;
};

TEST(TopTalkers, parts_add_up_to_the_whole_while_all_pairs_have_a_counter) {
  const Divided divided(3000);
  const auto whole = top(divided.whole, 3000);
  const auto sum = top_of(divided.parts, 3000);
  ASSERT_EQ(sum.size(), whole.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    expect_talker(sum[i], whole[i].src, whole[i].dst, whole[i].packets, whole[i].bytes);
  }
  EXPECT_THAT(top_of(divided.parts, 5), SizeIs(5));
}

TEST(TopTalkers, parts_keep_their_bounds_together) {
  constexpr std::size_t kCounters = 100;
  const Divided divided(kCounters);
  std::map<std::uint32_t, Talker> kept;
  for (Talker const& talker : top_of(divided.parts, 3 * kCounters)) {
    kept[talker.src] = talker;
    ASSERT_GE(talker.bytes, divided.expected.at(talker.src));
    ASSERT_LE(talker.bytes - talker.excess_bytes, divided.expected.at(talker.src));
    ASSERT_LE(talker.excess_bytes, divided.total / kCounters);
  }
  for (auto const& [src, bytes] : divided.expected) {
    ASSERT_TRUE(bytes <= divided.total / kCounters || kept.contains(src)) << src;
  }
}

}  // namespace
}  // namespace catena::monitor
