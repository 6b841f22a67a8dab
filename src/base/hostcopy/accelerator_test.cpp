// SPDX-License-Identifier: Apache-2.0
#include "base/hostcopy/accelerator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/hostcopy/testing/faulty_engine.hpp"

namespace catena::hostcopy {
namespace {

using testing::FaultyEngine;
using testing::FaultyEngineScript;
using State = Accelerator::State;

class AcceleratorTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kJobs = 8;
  static constexpr std::size_t kBytes = 64;
  static constexpr Engine::Limits kLimits{16, 4};

  struct Job {
    std::array<std::byte, kBytes> from{};
    std::array<std::byte, kBytes> to{};
    std::array<Move, 2> moves{};
    Accelerator::Ticket ticket = 0;
  };

  AcceleratorTest() {
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      Job& job = jobs_[j];
      std::ranges::generate(job.from, [i = j * 13]() mutable { return static_cast<std::byte>(++i); });
      job.moves = {Move{job.from.data(), job.to.data() + kBytes / 2, kBytes / 2},
                   Move{job.from.data() + kBytes / 2, job.to.data(), kBytes / 2}};
    }
  }
  static bool is_moved(Job const& job) {
    return std::equal(job.from.begin(), job.from.begin() + kBytes / 2, job.to.begin() + kBytes / 2) &&
           std::equal(job.from.begin() + kBytes / 2, job.from.end(), job.to.begin());
  }
  /// An engine at `node`, in the order of the calls.
  FaultyEngineScript& add(FaultyEngineScript script, int node = -1) {
    scripts_.push_back(std::move(script));
    members_.push_back({std::make_unique<FaultyEngine>(scripts_.back()), node});
    return scripts_.back();
  }
  Accelerator& open(AcceleratorOptions const& options = {}) {
    pool_.emplace(std::move(members_), kLimits);
    return accelerator_.emplace(*pool_, options);
  }
  void start_all() {
    for (Job& job : jobs_) {
      job.to.fill(std::byte{0});
      job.ticket = accelerator_->start(job.moves);
    }
  }
  /// Polls until nothing is in flight; the number of jobs with each state.
  std::map<State, std::uint32_t> finish() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (accelerator_->in_flight() > 0 && std::chrono::steady_clock::now() < until) {
      accelerator_->poll();
    }
    EXPECT_EQ(accelerator_->in_flight(), 0U);
    std::map<State, std::uint32_t> states;
    for (Job const& job : jobs_) {
      const State state = accelerator_->state(job.ticket);
      EXPECT_TRUE(state != State::kDone || is_moved(job));
      ++states[state];
      accelerator_->forget(job.ticket);
    }
    return states;
  }
  void expect_all_done() {
    start_all();
    EXPECT_EQ(finish(), (std::map<State, std::uint32_t>{{State::kDone, kJobs}}));
  }

  std::array<Job, kJobs> jobs_;
  std::deque<FaultyEngineScript> scripts_;
  std::vector<AcceleratorPool::Member> members_;
  std::optional<AcceleratorPool> pool_;
  std::optional<Accelerator> accelerator_;  ///< destroyed before the pool
};

TEST_F(AcceleratorTest, takes_an_engine_of_its_node) {
  FaultyEngineScript const& far = add({}, 0);
  FaultyEngineScript const& near = add({}, 1);
  open({.node = 1});
  expect_all_done();
  EXPECT_EQ(near.done, kJobs);
  EXPECT_EQ(far.submitted, 0U);
  const AcceleratorPool::Census census = pool_->census();
  EXPECT_EQ(census.idle, 1U);
  EXPECT_EQ(census.in_use, 1U);
}

TEST_F(AcceleratorTest, without_an_engine_the_cpu_copies) {
  add({.fails_to_start = true});
  Accelerator const& accelerator = open();
  EXPECT_EQ(accelerator.engine(), nullptr);
  expect_all_done();
  EXPECT_EQ(accelerator.counters().by_cpu, kJobs);
}

TEST_F(AcceleratorTest, the_cpu_makes_what_a_full_engine_refuses) {
  FaultyEngineScript const& small = add({.max_jobs = 3});
  Accelerator const& accelerator = open();
  expect_all_done();
  EXPECT_EQ(small.done, 3U);
  EXPECT_EQ(accelerator.counters().refused, kJobs - 3);
  EXPECT_EQ(accelerator.counters().by_cpu, kJobs - 3);
  EXPECT_EQ(accelerator.counters().changes, 0U);
}

TEST_F(AcceleratorTest, an_engine_that_is_busy_too_often_is_changed_and_goes_back) {
  FaultyEngineScript const& small = add({.max_jobs = 1});
  FaultyEngineScript const& other = add({});
  Accelerator const& accelerator = open({.busy_limit = 2, .busy_period = std::chrono::hours(1)});
  expect_all_done();  // 1 by the first, 3 refused, 4 by the other one
  EXPECT_EQ(small.done, 1U);
  EXPECT_EQ(other.done, kJobs - 4);
  EXPECT_EQ(accelerator.counters().changes, 1U);
  accelerator_->poll();
  EXPECT_EQ(pool_->census().idle, 1U) << "another accelerator may have the first one";
}

TEST_F(AcceleratorTest, the_next_engine_gets_what_a_lost_one_had) {
  add({.fails_after = 2});
  FaultyEngineScript const& next = add({});
  Accelerator const& accelerator = open();
  expect_all_done();
  EXPECT_EQ(next.done, kJobs - 2);
  EXPECT_EQ(accelerator.counters().resubmitted, kJobs - 2);
  EXPECT_EQ(accelerator.counters().losses, 1U);
  EXPECT_EQ(pool_->census().lost, 1U);
  expect_all_done();
  EXPECT_EQ(next.done, 2 * kJobs - 2);
}

TEST_F(AcceleratorTest, the_cpu_takes_over_when_no_engine_is_left) {
  add({.fails_after = 2});
  Accelerator const& accelerator = open();
  expect_all_done();
  EXPECT_EQ(accelerator.engine(), nullptr);
  EXPECT_EQ(accelerator.counters().by_cpu, kJobs - 2);
}

TEST_F(AcceleratorTest, an_engine_that_does_not_answer_is_lost) {
  add({.stuck_after = 0});
  add({});
  Accelerator const& accelerator = open({.patience = std::chrono::milliseconds(5)});
  expect_all_done();
  EXPECT_EQ(accelerator.counters().losses, 1U);
}

TEST_F(AcceleratorTest, an_engine_that_lies_is_lost) {
  for (const auto lie : {FaultyEngineScript::Lie::kTwice, FaultyEngineScript::Lie::kUnknown}) {
    add({.lies_after = 1, .lie = lie});
    add({});
    Accelerator const& accelerator = open();
    expect_all_done();
    EXPECT_EQ(accelerator.counters().losses, 1U);
    accelerator_.reset();
    members_.clear();
  }
}

TEST_F(AcceleratorTest, a_comparison_finds_a_completion_that_comes_too_early) {
  add({.lies_after = 1, .lie = FaultyEngineScript::Lie::kEarly});
  add({});
  Accelerator const& accelerator = open({.verify_every = 1});
  expect_all_done();
  EXPECT_EQ(accelerator.counters().losses, 1U);
}

TEST_F(AcceleratorTest, a_job_on_which_two_engines_fail_is_illegal_and_the_others_are_done) {
  using Illegal = FaultyEngineScript::Illegal;
  for (const Illegal with_illegal : {Illegal::kRefused, Illegal::kFailed, Illegal::kHalts}) {
    const std::set<const std::byte*> illegal = {jobs_[3].from.data()};
    for (int engine = 0; engine < 3; ++engine) {
      add({.seed = static_cast<std::uint32_t>(engine + 1), .illegal = illegal, .with_illegal = with_illegal});
    }
    Accelerator const& accelerator = open();
    start_all();
    EXPECT_EQ(finish(), (std::map<State, std::uint32_t>{{State::kDone, kJobs - 1}, {State::kIllegal, 1}}));
    EXPECT_EQ(accelerator.counters().illegal, 1U);
    EXPECT_EQ(pool_->census().lost, with_illegal == Illegal::kHalts ? 2U : 0U);
    EXPECT_NE(accelerator.engine(), nullptr) << "the service goes on";
    accelerator_.reset();
    members_.clear();
  }
}

TEST_F(AcceleratorTest, an_owner_of_illegal_jobs_costs_two_engines_and_no_more) {
  using Illegal = FaultyEngineScript::Illegal;
  for (const Illegal with_illegal : {Illegal::kRefused, Illegal::kFailed, Illegal::kHalts}) {
    for (int engine = 0; engine < 6; ++engine) {
      add({.seed = static_cast<std::uint32_t>(engine + 1),
           .illegal_memory = std::as_bytes(std::span(jobs_).first(5)),
           .with_illegal = with_illegal});
    }
    Accelerator const& accelerator = open();
    JobOwner bad;
    JobOwner good;
    const auto start = [&](std::size_t job) {
      jobs_[job].ticket = accelerator_->start(jobs_[job].moves, job < 5 ? &bad : &good);
    };
    for (std::size_t job = 0; job < kJobs; ++job) {
      start(job);
    }
    EXPECT_EQ(finish(), (std::map<State, std::uint32_t>{{State::kDone, kJobs - 1}, {State::kIllegal, 1}}));
    EXPECT_TRUE(bad.is_quarantined);
    EXPECT_FALSE(good.is_quarantined);
    EXPECT_EQ(accelerator.counters().quarantined, 1U);
    EXPECT_EQ(accelerator.counters().losses, with_illegal == Illegal::kHalts ? 2U : 0U);
    const std::uint64_t by_engine = accelerator.counters().by_engine;
    for (std::size_t job = 0; job < kJobs; ++job) {
      start(job);
    }
    EXPECT_EQ(finish(), (std::map<State, std::uint32_t>{{State::kDone, kJobs}}));
    EXPECT_EQ(accelerator.counters().by_engine, by_engine + 3) << "those of the other owner";
    accelerator_.reset();
    members_.clear();
    scripts_.clear();
  }
}

TEST_F(AcceleratorTest, memory_is_within_reach_until_its_last_user_ends) {
  FaultyEngineScript const& first = add({.max_memories = 2});
  FaultyEngineScript const& second = add({.max_memories = 1});
  open();
  auto memory = std::make_shared<std::array<std::byte, 64>>();
  const std::weak_ptr<std::array<std::byte, 64>> lives = memory;
  Result<AcceleratorPool::Reach> reach = pool_->register_memory(*memory, memory);
  ASSERT_EQ(reach.status(), absl::OkStatus());
  std::array<std::byte, 64> more{};
  EXPECT_TRUE(absl::IsResourceExhausted(pool_->register_memory(more, nullptr).status()));
  EXPECT_EQ(first.memories, 1U) << "what one engine refuses, none reaches";
  memory.reset();
  EXPECT_FALSE(lives.expired());
  reach = AcceleratorPool::Reach();
  EXPECT_TRUE(lives.expired());
  EXPECT_EQ(first.memories + second.memories, 0U);
}

TEST_F(AcceleratorTest, memory_that_an_engine_may_still_read_stays) {
  add({.fails_after = 2, .cannot_stop = true});
  open();
  auto memory = std::make_shared<std::array<std::byte, 64>>();
  const std::weak_ptr<std::array<std::byte, 64>> lives = memory;
  Result<AcceleratorPool::Reach> reach = pool_->register_memory(*memory, memory);
  memory.reset();
  ASSERT_EQ(reach.status(), absl::OkStatus());
  start_all();
  finish();
  ASSERT_EQ(accelerator_->counters().losses, 1U);
  reach = AcceleratorPool::Reach();
  EXPECT_FALSE(lives.expired());
  accelerator_.reset();
  pool_.reset();
  EXPECT_TRUE(lives.expired());
}

TEST_F(AcceleratorTest, a_job_beside_a_suspect_is_made_by_the_cpu_and_makes_nothing_illegal) {
  const std::set<const std::byte*> illegal = {jobs_[1].from.data(), jobs_[2].from.data()};
  for (int engine = 0; engine < 4; ++engine) {
    add({.mean_polls = 1,
         .is_ordered = false,
         .illegal = illegal,
         .with_illegal = FaultyEngineScript::Illegal::kHalts});
  }
  scripts_[0].fails_after = 0;   // with both in flight
  scripts_[1].mean_polls = 100;  // the first of them is tried for a while
  open();
  jobs_[0].ticket = accelerator_->start(jobs_[0].moves);
  jobs_[1].ticket = accelerator_->start(jobs_[1].moves);
  accelerator_->poll();
  ASSERT_EQ(accelerator_->counters().losses, 1U);
  for (std::size_t job = 2; job < jobs_.size(); ++job) {  // the first one is illegal, too
    jobs_[job].ticket = accelerator_->start(jobs_[job].moves);
    EXPECT_EQ(accelerator_->state(jobs_[job].ticket), State::kDone);
  }
  const std::map<State, std::uint32_t> states = finish();
  EXPECT_EQ(states, (std::map<State, std::uint32_t>{{State::kDone, kJobs - 1}, {State::kIllegal, 1}}));
}

TEST_F(AcceleratorTest, what_an_engine_may_still_write_is_abandoned) {
  add({.fails_after = 2, .cannot_stop = true});
  add({});
  open();
  start_all();
  EXPECT_EQ(finish(), (std::map<State, std::uint32_t>{{State::kDone, 2}, {State::kAbandoned, kJobs - 2}}));
}

TEST_F(AcceleratorTest, engines_return_to_the_pool_at_its_end) {
  add({});
  open();
  expect_all_done();
  accelerator_.reset();
  EXPECT_EQ(pool_->census().idle, 1U);
  accelerator_.emplace(*pool_, AcceleratorOptions{});
  start_all();
  accelerator_.reset();  // with jobs in flight: it may not be used again
  EXPECT_EQ(pool_->census().lost, 1U);
}

}  // namespace
}  // namespace catena::hostcopy
