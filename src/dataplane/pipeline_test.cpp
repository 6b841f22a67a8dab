// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace catena::dataplane {
namespace {

constexpr std::chrono::milliseconds kNap{2};

/// Sleeps in each poll, and says that this was work, or that it was none.
class NappingStage final : public Stage {
 public:
  NappingStage(int polls, Progress says) : Stage("nap"), left_(polls), says_(says) {}
  Result<Progress> poll() override {
    if (left_ == 0) {
      return Progress::kFinished;
    }
    --left_;
    std::this_thread::sleep_for(kNap);
    return says_;
  }

 private:
  int left_;
  Progress says_;
};

TEST(RunStages, the_time_of_polls_that_worked_is_counted_and_that_of_idle_ones_is_not) {
  for (const std::uint32_t workers : {1U, 3U}) {
    NappingStage idle(5, Progress::kIdle);
    NappingStage working(5, Progress::kWorked);
    NappingStage none(0, Progress::kIdle);
    std::array<std::atomic<std::uint64_t>, 3> busy_ns{};
    ASSERT_TRUE(run_stages({&idle, &working, &none}, workers, busy_ns).ok());
    const auto five_naps = static_cast<std::uint64_t>(std::chrono::nanoseconds(5 * kNap).count());
    EXPECT_GE(busy_ns[1], five_naps) << "sleep_for() sleeps at least that long";
    EXPECT_LT(busy_ns[0], busy_ns[1]);
    EXPECT_LT(busy_ns[2], busy_ns[1]);
  }
}

TEST(RunStages, counters_may_be_left_out) {
  NappingStage stage(1, Progress::kWorked);
  EXPECT_TRUE(run_stages({&stage}, 1).ok());
}

}  // namespace
}  // namespace catena::dataplane
