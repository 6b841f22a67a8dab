// SPDX-License-Identifier: Apache-2.0
#include "packet/memory/free_slots.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace catena::memory {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<std::uint32_t> take(FreeSlots& free, std::uint32_t count) {
  std::vector<std::uint32_t> slots(count);
  EXPECT_TRUE(free.acquire(slots)) << count << " of " << free.count();
  return slots;
}

void give(FreeSlots& free, std::vector<std::uint32_t> const& slots) { free.release(slots); }

TEST(FreeSlots, there_are_all_or_none_at_first) {
  EXPECT_EQ(FreeSlots(512, /*are_free=*/true).count(), 512U);
  FreeSlots none(512, /*are_free=*/false);
  EXPECT_EQ(none.count(), 0U);
  std::uint32_t slot = 0;
  EXPECT_FALSE(none.acquire(std::span(&slot, 1)));
}

TEST(FreeSlots, all_that_are_asked_for_or_none) {
  FreeSlots free(128, /*are_free=*/true);
  take(free, 100);
  std::array<std::uint32_t, 29> more;
  more.fill(77);
  EXPECT_FALSE(free.acquire(more));
  EXPECT_THAT(more, Each(77U));
  EXPECT_EQ(free.count(), 28U);
  EXPECT_TRUE(free.acquire(std::span(more).first(28)));
  EXPECT_EQ(free.count(), 0U);
  EXPECT_TRUE(free.acquire({})) << "nothing can always be had";
}

TEST(FreeSlots, the_cursor_goes_round_past_what_is_in_use) {
  FreeSlots free(128, /*are_free=*/true);
  const std::vector<std::uint32_t> all = take(free, 126);
  give(free, {3, 70, 5});
  EXPECT_THAT(take(free, 4), ElementsAre(126, 127, 3, 5)) << "the end, then from the beginning";
  EXPECT_THAT(take(free, 1), ElementsAre(70));
  give(free, {70, 71, 69});
  EXPECT_THAT(take(free, 3), ElementsAre(71, 69, 70)) << "what is before the cursor, in its word too, comes last";
}

TEST(FreeSlots, one_that_is_given_twice_is_there_once) {
  FreeSlots free(64, /*are_free=*/true);
  take(free, 64);
  give(free, {9, 9});
  give(free, {9});
  EXPECT_EQ(free.count(), 1U);
  EXPECT_THAT(take(free, 1), ElementsAre(9));
}

TEST(FreeSlots, no_slot_is_in_two_hands_and_none_is_lost_between_threads) {
  constexpr std::uint32_t kSlots = 512;
  FreeSlots free(kSlots, /*are_free=*/true);
  std::vector<std::atomic<int>> owners(kSlots);
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> taken{0};
  const auto give_back = [&](std::vector<std::uint32_t> const& slots) {
    for (const std::uint32_t slot : slots) {
      owners[slot].fetch_sub(1);
    }
    free.release(slots);
  };
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::vector<std::uint32_t>> mine;
    std::uint64_t here = 0;
    for (int i = 0; i < 20'000; ++i) {
      std::vector<std::uint32_t> slots(1 + random() % 96);
      if (free.acquire(slots)) {
        for (const std::uint32_t slot : slots) {
          wrong += owners[slot].fetch_add(1) != 0 ? 1 : 0;
        }
        here += slots.size();
        mine.push_back(std::move(slots));
      }
      if (!mine.empty() && (mine.size() > 2 || random() % 2 == 0)) {
        std::swap(mine[random() % mine.size()], mine.back());
        std::shuffle(mine.back().begin(), mine.back().end(), random);
        give_back(mine.back());
        mine.pop_back();
      }
    }
    std::ranges::for_each(mine, give_back);
    taken += here;
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned seed = 1; seed <= 4; ++seed) {
      threads.emplace_back(work, seed);
    }
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(taken, kSlots) << "went round";
  EXPECT_EQ(free.count(), kSlots);
  std::vector<std::uint32_t> all = take(free, kSlots);
  std::ranges::sort(all);
  std::vector<std::uint32_t> each(kSlots);
  std::iota(each.begin(), each.end(), 0U);
  EXPECT_EQ(all, each);
}

}  // namespace
}  // namespace catena::memory
