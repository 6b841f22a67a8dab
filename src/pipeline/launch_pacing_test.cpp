// SPDX-License-Identifier: Apache-2.0
#include "pipeline/launch_pacing.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace catena::runtime {
namespace {

using std::chrono::microseconds;

constexpr LaunchPacing::Clock::time_point kPacingStart{std::chrono::seconds(1000)};

TEST(LaunchPacing, launches_start_evenly_spread_over_the_time_of_one) {
  LaunchPacing pacing(4, microseconds(1000));
  for (int i = 0; i < 200; ++i) {
    pacing.completed(microseconds(80));
  }
  pacing.submitted(kPacingStart);
  EXPECT_FALSE(pacing.is_due(kPacingStart, kPacingStart + microseconds(19)));
  EXPECT_TRUE(pacing.is_due(kPacingStart, kPacingStart + microseconds(21)));
}

TEST(LaunchPacing, one_slow_launch_changes_the_average_little) {
  LaunchPacing pacing(1, microseconds(1'000'000));
  pacing.completed(microseconds(800));  // an eighth of it
  pacing.submitted(kPacingStart);
  EXPECT_FALSE(pacing.is_due(kPacingStart, kPacingStart + microseconds(100)));
  EXPECT_TRUE(pacing.is_due(kPacingStart, kPacingStart + microseconds(101)));
}

TEST(LaunchPacing, no_launch_waits_longer_than_the_maximum) {
  LaunchPacing pacing(1, microseconds(50));
  pacing.completed(std::chrono::seconds(8));
  pacing.submitted(kPacingStart);
  EXPECT_FALSE(pacing.is_due(kPacingStart, kPacingStart + microseconds(50)));
  EXPECT_TRUE(pacing.is_due(kPacingStart, kPacingStart + microseconds(51)));
}

TEST(LaunchPacing, another_device_has_times_of_its_own) {
  LaunchPacing pacing(1, microseconds(1000));
  pacing.completed(std::chrono::seconds(8));
  pacing.submitted(kPacingStart);
  pacing.forget();
  EXPECT_TRUE(pacing.is_due(kPacingStart, kPacingStart + microseconds(1)));
}

}  // namespace
}  // namespace catena::runtime
