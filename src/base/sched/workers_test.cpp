// SPDX-License-Identifier: Apache-2.0
#include "base/sched/workers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <pthread.h>

namespace catena::sched {
namespace {

using ::testing::ElementsAre;

constexpr std::chrono::milliseconds kSleep{2};

/// Sleeps in each poll, and says that this was work, or that it was none.
class NappingStage final : public Stage {
 public:
  NappingStage(int polls, Progress says) : Stage("nap"), left_(polls), says_(says) {}
  Result<Progress> poll() override {
    if (left_ == 0) {
      return Progress::kFinished;
    }
    --left_;
    std::this_thread::sleep_for(kSleep);
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
    ASSERT_TRUE(run_stages({&idle, &working, &none}, workers).ok());
    const auto five_naps = static_cast<std::uint64_t>(std::chrono::nanoseconds(5 * kSleep).count());
    EXPECT_GE(working.busy_ns(), five_naps) << "sleep_for() sleeps at least that long";
    EXPECT_LT(idle.busy_ns(), working.busy_ns());
    EXPECT_LT(none.busy_ns(), working.busy_ns());
  }
}

/// Takes bytes out of a socket, and ends after `bytes` of them.
class SocketStage final : public Stage {
 public:
  SocketStage(int socket, int bytes) : Stage("socket"), socket_(socket), left_(bytes) {}
  Result<Progress> poll() override {
    ++polls;
    if (left_ == 0) {
      return Progress::kFinished;
    }
    char byte = 0;
    if (recv(socket_, &byte, 1, MSG_DONTWAIT) != 1) {
      return Progress::kIdle;
    }
    --left_;
    return Progress::kWorked;
  }
  bool is_passive() const override { return true; }
  std::vector<int> sockets() const override { return {socket_}; }

  int polls = 0;

 private:
  int socket_;
  int left_;
};

TEST(RunStages, an_idle_worker_waits_for_the_sockets_of_its_stages) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends.data()), 0);
  constexpr int kBytes = 20;
  SocketStage stage(ends[0], kBytes);
  std::thread sender([&] {
    for (int i = 0; i < kBytes; ++i) {
      std::this_thread::sleep_for(10 * kSleep);
      EXPECT_EQ(send(ends[1], "x", 1, 0), 1);
    }
  });
  ASSERT_TRUE(run_stages({&stage}, 1).ok());
  sender.join();
  // polling would be thousands of times for each byte
  EXPECT_LT(stage.polls, kBytes * 500);
  close(ends[0]);
  close(ends[1]);
}

TEST(RunStages, counters_may_be_left_out) {
  NappingStage stage(1, Progress::kWorked);
  EXPECT_TRUE(run_stages({&stage}, 1).ok());
}

TEST(AssignStages, gives_runs_of_neighbours) {
  for (const std::uint32_t workers : {1U, 2U, 4U, 6U, 20U}) {
    const auto groups = assign_stages(6, workers);
    EXPECT_EQ(groups.size(), std::min(workers, 6U));
    std::vector<std::size_t> joined;
    for (auto const& group : groups) {
      EXPECT_FALSE(group.empty());
      joined.insert(joined.end(), group.begin(), group.end());
    }
    EXPECT_THAT(joined, ElementsAre(0, 1, 2, 3, 4, 5));
  }
}

std::uint64_t busiest(std::vector<std::vector<std::size_t>> const& groups, std::vector<std::uint64_t> const& busy_ns) {
  std::uint64_t most = 0;
  for (auto const& group : groups) {
    std::uint64_t sum = 0;
    for (const std::size_t stage : group) {
      sum += busy_ns[stage];
    }
    most = std::max(most, sum);
  }
  return most;
}

/// The smallest share of the busiest worker over all ways to share out.
std::uint64_t best(std::vector<std::uint64_t> const& busy_ns, std::size_t workers) {
  std::size_t ways = 1;
  for (std::size_t i = 0; i < busy_ns.size(); ++i) {
    ways *= workers;
  }
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t way = 0; way < ways; ++way) {
    std::vector<std::vector<std::size_t>> groups(workers);
    for (std::size_t stage = 0, rest = way; stage < busy_ns.size(); ++stage, rest /= workers) {
      groups[rest % workers].push_back(stage);
    }
    least = std::min(least, busiest(groups, busy_ns));
  }
  return least;
}

TEST(ShareOut, gives_each_stage_to_one_worker_and_none_more_than_four_thirds_of_the_best) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const std::size_t workers = 1 + random() % 3;
    std::vector<std::uint64_t> busy_ns(1 + random() % 7);
    for (std::uint64_t& ns : busy_ns) {
      ns = random() % 1000;
    }
    const auto groups = balance_by_load(busy_ns, workers);
    ASSERT_EQ(groups.size(), workers);
    std::vector<std::size_t> joined;
    for (auto const& group : groups) {
      joined.insert(joined.end(), group.begin(), group.end());
    }
    std::sort(joined.begin(), joined.end());
    std::vector<std::size_t> all(busy_ns.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    EXPECT_EQ(joined, all);
    EXPECT_LE(3 * busiest(groups, busy_ns), 4 * best(busy_ns, workers));
  }
}

/// Works for a while in each poll, and sees whether two threads ever poll it at once.
class WorkingStage final : public Stage {
 public:
  WorkingStage(int polls, std::chrono::microseconds each) : Stage("work"), left_(polls), each_(each) {}
  Result<Progress> poll() override {
    if (is_polled_.exchange(true)) {
      return absl::InternalError("polled by two threads at once");
    }
    if (left_ == 0) {
      ++finished_;
      is_polled_ = false;
      return Progress::kFinished;
    }
    --left_;  // not atomic: a thread that takes over must see it
    threads_.insert(last_ = std::this_thread::get_id());
    std::this_thread::sleep_for(each_);
    is_polled_ = false;
    return Progress::kWorked;
  }
  std::thread::id last_thread() const { return last_; }
  std::size_t threads() const { return threads_.size(); }
  int polls_left() const { return left_; }
  int times_finished() const { return finished_; }

 private:
  int left_;
  int finished_ = 0;
  std::chrono::microseconds each_;
  std::atomic<bool> is_polled_{false};
  std::thread::id last_;
  std::set<std::thread::id> threads_;
};

TEST(RunStages, neighbours_that_are_both_busy_get_workers_of_their_own) {
  constexpr int kPolls = 200;
  WorkingStage first(kPolls, kSleep);
  WorkingStage second(kPolls, kSleep);
  WorkingStage third(kPolls, kSleep / 20);
  WorkingStage fourth(kPolls, kSleep / 20);
  ASSERT_EQ(run_stages({&first, &second, &third, &fourth}, 2), absl::OkStatus());
  EXPECT_NE(first.last_thread(), second.last_thread());
  EXPECT_EQ(std::max(first.threads(), second.threads()), 2U) << "they began on one";
}

/// Runs stages of unequal work to their end; returns how many of them changed their worker.
std::size_t moved_in_a_run(std::uint32_t workers) {
  std::vector<std::unique_ptr<WorkingStage>> stages;
  std::vector<Stage*> all;
  for (int i = 0; i < 7; ++i) {
    // the busy ones are neighbours, and end one after another: shares change at the start and later
    stages.push_back(std::make_unique<WorkingStage>(80 + 20 * i, i < 4 ? kSleep : kSleep / 20));
    all.push_back(stages.back().get());
  }
  EXPECT_EQ(run_stages(all, workers), absl::OkStatus());
  std::size_t moved = 0;
  for (std::unique_ptr<WorkingStage> const& stage : stages) {
    EXPECT_EQ(stage->polls_left(), 0);
    EXPECT_EQ(stage->times_finished(), 1);
    moved += stage->threads() > 1 ? 1 : 0;
  }
  return moved;
}

TEST(RunStages, every_stage_is_polled_to_its_end_and_not_beyond_however_often_shares_change) {
  // on a machine with other work all naps may take as long as one another: then nothing moves
  constexpr int kTries = 20;
  for (const std::uint32_t workers : {2U, 3U, 5U}) {
    std::size_t moved = 0;
    for (int i = 0; i < kTries && moved == 0; ++i) {
      moved = moved_in_a_run(workers);
    }
    EXPECT_GT(moved, 0U) << "shares never changed: nothing was tried";
  }
}

/// New threads get stacks that no address space holds, as long as this lives.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t huge;
    EXPECT_EQ(pthread_attr_init(&huge), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 62U), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  NoMoreThreads(NoMoreThreads const&) = delete;
  NoMoreThreads& operator=(NoMoreThreads const&) = delete;
  ~NoMoreThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

/// Takes the system's threads away in its first poll, and is finished when it is told to.
class GreedyStage final : public Stage {
 public:
  GreedyStage() : Stage("greedy") {}
  Result<Progress> poll() override {
    if (!taken_) {
      taken_.emplace();
    }
    return Progress::kIdle;
  }

 private:
  std::optional<NoMoreThreads> taken_;
};

TEST(RunStages, a_worker_that_cannot_be_started_is_an_error) {
  NappingStage first(1, Progress::kWorked);
  NappingStage second(1, Progress::kWorked);
  Status status;
  {
    const NoMoreThreads none;
    status = run_stages({&first, &second}, 2);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("worker 1 of 2 cannot be started: "));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("--workers"));
}

TEST(RunStages, workers_that_run_already_end_where_a_later_one_cannot_be_started) {
  // so many that the first one polls its stage before the last one is started
  std::vector<std::unique_ptr<Stage>> stages;
  stages.push_back(std::make_unique<GreedyStage>());
  std::vector<Stage*> all{stages.back().get()};
  for (int i = 1; i < 2000; ++i) {
    stages.push_back(std::make_unique<NappingStage>(1, Progress::kIdle));
    all.push_back(stages.back().get());
  }
  const Status status = run_stages(all, static_cast<std::uint32_t>(all.size()));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("of 2000 cannot be started: "));
}

/// Notes on which core it is polled.
class CoreStage final : public Stage {
 public:
  CoreStage() : Stage("core") {}
  Result<Progress> poll() override {
    cores_.insert(sched_getcpu());
    return --left_ == 0 ? Progress::kFinished : Progress::kWorked;
  }
  std::set<int> const& cores() const { return cores_; }

 private:
  int left_ = 1000;
  std::set<int> cores_;
};

TEST(RunStages, workers_stay_on_the_cores_that_are_theirs) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  std::vector<std::uint32_t> cores;
  for (std::uint32_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &usable)) {
      cores.insert(cores.begin(), core);  // the last one first: not where a thread would begin anyway
    }
  }
  CoreStage first;
  CoreStage second;
  ASSERT_EQ(run_stages({&first, &second}, 2, cores), absl::OkStatus());
  EXPECT_THAT(first.cores(), ElementsAre(static_cast<int>(cores[0])));
  EXPECT_THAT(second.cores(), ElementsAre(static_cast<int>(cores[1 % cores.size()])));
}

TEST(RunStages, a_core_that_is_not_there_ends_the_run) {
  CoreStage stage;
  const Status status = run_stages({&stage}, 1, std::vector<std::uint32_t>{CPU_SETSIZE - 1});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("cannot be put on core 1023"));
}

}  // namespace
}  // namespace catena::sched
