// SPDX-License-Identifier: Apache-2.0
#include "base/core/poll_backoff.hpp"

#include <gtest/gtest.h>

namespace catena {
namespace {

std::uint32_t rounds_until_block(PollBackoff& backoff) {
  std::uint32_t rounds = 0;
  while (!backoff.should_block()) {
    backoff.found_nothing();
    ++rounds;
  }
  return rounds;
}

TEST(PollBackoff, who_is_woken_waits_after_rounds_without_work_and_until_there_is_some) {
  PollBackoff backoff;
  const std::uint32_t rounds = rounds_until_block(backoff);
  EXPECT_GT(rounds, PollBackoff::kSpins);
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    backoff.found_nothing();
    EXPECT_TRUE(backoff.should_block());
  }
  backoff.found_work();
  EXPECT_FALSE(backoff.should_block());
  EXPECT_EQ(rounds_until_block(backoff), rounds);
}

}  // namespace
}  // namespace catena
