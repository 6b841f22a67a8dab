// SPDX-License-Identifier: Apache-2.0
#include "pipeline/upstream_chains.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace catena::runtime {
namespace {

TEST(SignalSchedule, a_change_is_due_at_once_and_repeated_often_at_first) {
  SignalSchedule schedule;
  SignalSchedule::Clock::time_point now{std::chrono::hours(1)};
  EXPECT_TRUE(schedule.is_due(false, now)) << "nothing is signalled yet";
  EXPECT_FALSE(schedule.is_due(false, now + kFlowRepeat / 2));
  EXPECT_TRUE(schedule.is_due(false, now + kFlowRepeat));
  now += kFlowRepeat;
  EXPECT_EQ(schedule.interval(now), kFlowRepeat);

  EXPECT_TRUE(schedule.is_due(true, now)) << "a change";
  EXPECT_TRUE(schedule.is_paused());
  EXPECT_FALSE(schedule.is_due(true, now));
  EXPECT_EQ(schedule.interval(now), kFlowRepeatAtFirst);
  EXPECT_TRUE(schedule.is_due(true, now + kFlowRepeatAtFirst));
  EXPECT_EQ(schedule.interval(now + kFlowRepeat), kFlowRepeat);
  EXPECT_FALSE(schedule.is_due(true, now + kFlowRepeat)) << "no longer new";
  EXPECT_TRUE(schedule.is_due(true, now + kFlowRepeatAtFirst + kFlowRepeat));
}

}  // namespace
}  // namespace catena::runtime
