// SPDX-License-Identifier: Apache-2.0
#include "service/retries.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace catena::service {
namespace {

using std::chrono::seconds;

constexpr Retries::Clock::time_point kBegin{seconds(1000)};

TEST(RetriesTest, pauses_double_up_to_the_longest) {
  Retries retries;
  std::vector<int> starts;
  for (int second = 0; second < 400; ++second) {
    if (retries.is_due("a", true, kBegin + seconds(second))) {
      starts.push_back(second);
    }
  }
  // the failure is seen in the next second each time
  EXPECT_EQ(starts, (std::vector<int>{1, 4, 9, 18, 35, 68, 133, 198, 263, 328, 393}));
}

TEST(RetriesTest, a_chain_that_runs_long_enough_begins_with_the_shortest_pause_again) {
  Retries retries;
  EXPECT_FALSE(retries.is_due("a", true, kBegin));
  EXPECT_EQ(retries.left("a", kBegin), seconds(1));
  EXPECT_TRUE(retries.is_due("a", true, kBegin + seconds(1)));
  EXPECT_FALSE(retries.is_due("a", false, kBegin + seconds(2)));
  EXPECT_EQ(retries.left("a", kBegin + seconds(2)), std::nullopt);
  EXPECT_FALSE(retries.is_due("a", true, kBegin + seconds(30)));
  EXPECT_EQ(retries.left("a", kBegin + seconds(30)), seconds(2)) << "it ran for less";
  EXPECT_TRUE(retries.is_due("a", true, kBegin + seconds(32)));
  EXPECT_FALSE(retries.is_due("a", false, kBegin + seconds(32) + Retries::kLongest));
  EXPECT_FALSE(retries.is_due("a", true, kBegin + seconds(200)));
  EXPECT_EQ(retries.left("a", kBegin + seconds(200)), seconds(1));
}

TEST(RetriesTest, chains_wait_apart_and_are_forgotten) {
  Retries retries;
  EXPECT_FALSE(retries.is_due("a", true, kBegin));
  EXPECT_TRUE(retries.is_due("a", true, kBegin + seconds(1)));
  EXPECT_FALSE(retries.is_due("b", true, kBegin + seconds(1)));
  EXPECT_EQ(retries.left("b", kBegin + seconds(1)), seconds(1));
  EXPECT_FALSE(retries.is_due("a", true, kBegin + seconds(1)));
  EXPECT_EQ(retries.left("a", kBegin + seconds(1)), seconds(2));
  retries.forget("a");
  EXPECT_EQ(retries.left("a", kBegin + seconds(1)), std::nullopt);
}

}  // namespace
}  // namespace catena::service
