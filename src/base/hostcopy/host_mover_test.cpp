// SPDX-License-Identifier: Apache-2.0
#include "base/hostcopy/host_mover.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/hostcopy/testing/faulty_engine.hpp"

namespace catena::hostcopy {
namespace {

using testing::FaultyEngine;
using testing::FaultyEngineScript;

/// Jobs that reverse the parts of a memory of their own.
class HostMoverTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kJobs = 4;
  static constexpr std::uint32_t kMoves = 32;
  static constexpr std::size_t kPartBytes = 100;

  struct Job {
    std::vector<std::byte> from = std::vector<std::byte>(kMoves * kPartBytes);
    std::vector<std::byte> to = std::vector<std::byte>(kMoves * kPartBytes);
    std::vector<Move> moves;
    HostMover::Ticket ticket = 0;
  };

  HostMoverTest() {
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
      for (std::size_t i = 0; i < jobs_[job].from.size(); ++i) {
        jobs_[job].from[i] = static_cast<std::byte>(i * 7 + i / 250 + job);
      }
      for (std::size_t i = 0; i < kMoves; ++i) {
        jobs_[job].moves.push_back({jobs_[job].from.data() + i * kPartBytes,
                                    jobs_[job].to.data() + (kMoves - 1 - i) * kPartBytes,
                                    static_cast<std::uint32_t>(i % 3 == 2 ? 0 : kPartBytes)});
      }
    }
  }
  /// All of them in flight at one time; then each is asked for until it is done.
  void run(HostMover& mover) {
    for (Job& job : jobs_) {
      std::fill(job.to.begin(), job.to.end(), std::byte{0xEE});
      job.ticket = mover.start(job.moves);
    }
    std::vector<Job*> waiting;
    for (Job& job : jobs_) {
      waiting.push_back(&job);
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!waiting.empty()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until);
      std::erase_if(waiting, [&](Job* job) {
        const bool done = mover.is_done(job->ticket);
        if (done) {
          expect_moved(*job);
        }
        return done;
      });
    }
  }
  static void expect_moved(Job const& job) {
    for (std::size_t i = 0; i < kMoves; ++i) {
      const auto part = job.to.begin() + static_cast<std::ptrdiff_t>((kMoves - 1 - i) * kPartBytes);
      if (i % 3 == 2) {
        EXPECT_EQ(std::count(part, part + kPartBytes, std::byte{0xEE}), kPartBytes) << "nothing was to be moved";
      } else {
        EXPECT_TRUE(std::equal(part, part + kPartBytes, job.from.begin() + static_cast<std::ptrdiff_t>(i * kPartBytes)))
            << i;
      }
    }
  }
  std::unique_ptr<Engine> faulty() { return std::make_unique<FaultyEngine>(script_); }

  FaultyEngineScript script_;
  std::array<Job, kJobs> jobs_;
  static constexpr Engine::Limits kLimits{kJobs, kMoves};
  static constexpr std::chrono::seconds kPatience{20};
};

TEST_F(HostMoverTest, the_cpu_is_done_at_once) {
  HostMover mover;
  for (Job& job : jobs_) {
    ASSERT_TRUE(mover.is_done(mover.start(job.moves)));
    std::fill(job.to.begin(), job.to.end(), std::byte{0});
  }
  run(mover);
  EXPECT_EQ(mover.engine(), "cpu");
}

TEST_F(HostMoverTest, jobs_end_in_any_order) {
  HostMover mover(faulty(), kLimits, kPatience);
  for (int i = 0; i < 50; ++i) {
    run(mover);
  }
  EXPECT_EQ(script_.done, 50 * kJobs);
  EXPECT_GT(script_.out_of_order, 0U);
  EXPECT_EQ(mover.engine(), "faulty");
}

TEST_F(HostMoverTest, the_cpu_moves_what_the_engine_has_no_room_for) {
  script_.max_jobs = 2;
  HostMover mover(faulty(), kLimits, kPatience);
  for (int i = 0; i < 50; ++i) {
    run(mover);
  }
  EXPECT_GT(script_.refused, 0U);
  EXPECT_EQ(script_.done + script_.refused, 50 * kJobs);
  EXPECT_EQ(mover.engine(), "faulty");
}

TEST_F(HostMoverTest, the_cpu_takes_over_what_a_lost_engine_left_half_done) {
  script_.fails_after = 6;
  HostMover mover(faulty(), kLimits, kPatience);
  run(mover);
  run(mover);  // fails with jobs in flight
  EXPECT_EQ(mover.engine(), "cpu");
  run(mover);
  EXPECT_EQ(script_.submitted, 2 * kJobs) << "nothing more is given to it";
}

TEST_F(HostMoverTest, an_engine_that_does_not_start_is_replaced) {
  script_.fails_to_start = true;
  HostMover mover(faulty(), kLimits, kPatience);
  EXPECT_EQ(mover.engine(), "cpu");
  run(mover);
}

TEST_F(HostMoverTest, an_engine_that_is_never_done_is_replaced) {
  script_.stuck_after = 0;
  HostMover mover(faulty(), kLimits, std::chrono::milliseconds(5));
  run(mover);
  EXPECT_EQ(mover.engine(), "cpu");
}

TEST_F(HostMoverTest, the_cpu_moves_what_the_engine_cannot) {
  HostMover mover(faulty(), {kJobs, kMoves - 1}, kPatience);  // what it is given is more than it was configured for
  run(mover);
  EXPECT_EQ(script_.submitted, 0U);
  EXPECT_EQ(mover.engine(), "faulty");
}

TEST_F(HostMoverTest, the_cpu_replaces_an_engine_that_cannot_be_opened) {
  HostMover mover(absl::UnavailableError("no such engine"), kLimits, kPatience);
  run(mover);
  EXPECT_EQ(mover.engine(), kCpuEngine);
}

}  // namespace
}  // namespace catena::hostcopy
