// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run_end.hpp"

#include "pipeline/test_support.hpp"

#include <gtest/gtest.h>

namespace catena::runtime {
namespace {

TEST(RunEnd, a_chain_that_ends_by_itself_is_not_replaced_later) {
  RunEnd end;
  const NfEntry one = testing::entry_of("one");
  EXPECT_FALSE(end.decide());
  EXPECT_FALSE(end.pass_on({one.instance.get()}));
  EXPECT_FALSE(end.is_passed_on());
  EXPECT_FALSE(end.is_migrated(*one.instance));
}

TEST(RunEnd, a_replaced_chain_keeps_the_state_that_is_taken) {
  RunEnd end;
  const NfEntry one = testing::entry_of("one");
  const NfEntry other = testing::entry_of("other");
  EXPECT_TRUE(end.pass_on({one.instance.get()}));
  EXPECT_TRUE(end.is_passed_on());
  EXPECT_FALSE(end.pass_on({other.instance.get()})) << "it has a successor";
  EXPECT_TRUE(end.decide());
  EXPECT_TRUE(end.decide()) << "whenever it is asked";
  EXPECT_TRUE(end.is_migrated(*one.instance));
  EXPECT_FALSE(end.is_migrated(*other.instance));
}

TEST(RunEnd, a_request_is_no_end) {
  RunEnd end;
  EXPECT_FALSE(end.is_stopped());
  end.stop();
  EXPECT_TRUE(end.is_stopped());
  EXPECT_TRUE(end.stop_flag().load());
  EXPECT_FALSE(end.has_ended());
  end.finish(absl::UnavailableError("gone"), true);
  EXPECT_TRUE(end.has_ended());
  EXPECT_EQ(end.outcome(), absl::UnavailableError("gone"));
  EXPECT_TRUE(end.is_empty());
}

}  // namespace
}  // namespace catena::runtime
