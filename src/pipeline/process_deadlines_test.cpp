// SPDX-License-Identifier: Apache-2.0
#include "pipeline/process_deadlines.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace catena::runtime {
namespace {

using std::chrono::milliseconds;

constexpr ProcessDeadlines::Clock::time_point kDeadlinesStart{std::chrono::hours(1)};
constexpr ProcessDeadlines::Clock::time_point kNeverWrote{};
constexpr milliseconds kDeadline = milliseconds(100) + ProcessDeadlines::kGrace;

TEST(ProcessDeadlines, a_unit_is_late_after_limit_and_grace) {
  const ProcessDeadlines deadlines(milliseconds(100));
  EXPECT_FALSE(deadlines.is_unit_late(kDeadlinesStart, kDeadlinesStart + kDeadline));
  EXPECT_TRUE(deadlines.is_unit_late(kDeadlinesStart, kDeadlinesStart + kDeadline + milliseconds(1)));
}

TEST(ProcessDeadlines, the_end_is_late_after_limit_and_grace) {
  ProcessDeadlines deadlines(milliseconds(100));
  deadlines.start_end(kDeadlinesStart);
  EXPECT_FALSE(deadlines.is_end_late(kNeverWrote, kDeadlinesStart + kDeadline));
  EXPECT_TRUE(deadlines.is_end_late(kNeverWrote, kDeadlinesStart + kDeadline + milliseconds(1)));
}

TEST(ProcessDeadlines, a_process_that_has_something_written_may_take_longer_but_not_for_ever) {
  ProcessDeadlines deadlines(milliseconds(100));
  deadlines.start_end(kDeadlinesStart);
  const auto later = kDeadlinesStart + std::chrono::minutes(9);
  EXPECT_FALSE(deadlines.is_end_late(later, later + kDeadline));
  EXPECT_TRUE(deadlines.is_end_late(later, later + kDeadline + milliseconds(1)));
  const auto last = kDeadlinesStart + ProcessDeadlines::kLongestEnd;
  EXPECT_FALSE(deadlines.is_end_late(last, last));
  EXPECT_TRUE(deadlines.is_end_late(last, last + milliseconds(1)));
}

}  // namespace
}  // namespace catena::runtime
