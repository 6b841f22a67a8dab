// SPDX-License-Identifier: Apache-2.0
#include "pipeline/retry_delay.hpp"

#include <gtest/gtest.h>

namespace catena::runtime {
namespace {

using std::chrono::milliseconds;

TEST(RetryDelay, waits_twice_as_long_each_time_up_to_the_longest) {
  RetryDelay delay(milliseconds(5), milliseconds(15));
  RetryDelay::Clock::time_point now{};
  EXPECT_TRUE(delay.is_due(now)) << "the first one at once";
  for (const int wait_ms : {5, 10, 15, 15}) {
    now += milliseconds(wait_ms - 1);
    EXPECT_FALSE(delay.is_due(now)) << wait_ms;
    now += milliseconds(1);
    EXPECT_TRUE(delay.is_due(now)) << wait_ms;
  }
}

TEST(RetryDelay, a_late_try_counts_from_when_it_was) {
  RetryDelay delay(milliseconds(5), milliseconds(15));
  RetryDelay::Clock::time_point now{};
  EXPECT_TRUE(delay.is_due(now));
  now += milliseconds(100);
  EXPECT_TRUE(delay.is_due(now));
  EXPECT_FALSE(delay.is_due(now + milliseconds(9)));
  EXPECT_TRUE(delay.is_due(now + milliseconds(10)));
}

TEST(RetryDelay, begins_again_at_once) {
  RetryDelay delay(milliseconds(5), milliseconds(15));
  RetryDelay::Clock::time_point now{};
  EXPECT_TRUE(delay.is_due(now));
  EXPECT_TRUE(delay.is_due(now += milliseconds(5)));
  delay.restart();
  EXPECT_TRUE(delay.is_due(now));
  EXPECT_FALSE(delay.is_due(now + milliseconds(4)));
  EXPECT_TRUE(delay.is_due(now + milliseconds(5)));
}

}  // namespace
}  // namespace catena::runtime
