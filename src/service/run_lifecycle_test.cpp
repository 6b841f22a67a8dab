// SPDX-License-Identifier: Apache-2.0
#include "service/run_lifecycle.hpp"

#include <gtest/gtest.h>

namespace catena::service {
namespace {

Status disk_full() { return absl::DataLossError("disk full"); }

RunLifecycle started_run() {
  RunLifecycle run("office");
  run.made(absl::OkStatus());
  run.started();
  return run;
}

TEST(RunLifecycle, one_whose_packets_are_all_done_has_finished) {
  RunLifecycle run("office");
  EXPECT_FALSE(run.is_made());
  run.made(absl::OkStatus());
  EXPECT_TRUE(run.is_made());
  EXPECT_EQ(run.state(), ChainState::kStarting);
  EXPECT_TRUE(run.can_start().ok());
  run.started();
  EXPECT_EQ(run.state(), ChainState::kRunning);
  EXPECT_TRUE(run.is_started() && run.is_running());
  run.returned(absl::OkStatus());
  EXPECT_FALSE(run.has_ended()) << "its ports are still open";
  run.ended(false);
  EXPECT_EQ(run.state(), ChainState::kFinished);
  EXPECT_TRUE(run.has_ended());
}

TEST(RunLifecycle, one_that_is_stopped_does_not_start) {
  RunLifecycle run("office");
  run.made(absl::OkStatus());
  run.stop();
  EXPECT_EQ(run.can_start(), absl::CancelledError("chain 'office' was stopped while it was being started"));
  EXPECT_FALSE(run.has_ended());
  run.ended(false);
  EXPECT_EQ(run.state(), ChainState::kStopped);
}

TEST(RunLifecycle, one_stopped_while_it_is_made_has_not_failed) {
  RunLifecycle run("office");
  run.stop();
  run.made(absl::CancelledError("gave up"));
  EXPECT_EQ(run.state(), ChainState::kStopped);
  EXPECT_TRUE(run.status().ok());
}

TEST(RunLifecycle, one_that_cannot_be_made_has_failed) {
  RunLifecycle run("office");
  run.made(disk_full());
  EXPECT_TRUE(run.is_made());
  EXPECT_EQ(run.state(), ChainState::kFailed);
  EXPECT_EQ(run.status(), disk_full());
}

TEST(RunLifecycle, one_that_ends_with_an_error_has_failed_even_if_it_was_stopped) {
  RunLifecycle run = started_run();
  run.stop();
  EXPECT_FALSE(run.is_running());
  EXPECT_EQ(run.state(), ChainState::kRunning);
  run.returned(disk_full());
  run.ended(false);
  EXPECT_EQ(run.state(), ChainState::kFailed);
}

TEST(RunLifecycle, one_that_another_replaced_has_stopped) {
  RunLifecycle run = started_run();
  run.returned(absl::OkStatus());
  run.ended(true);
  EXPECT_EQ(run.state(), ChainState::kStopped);
}

}  // namespace
}  // namespace catena::service
