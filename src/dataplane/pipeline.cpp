// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pipeline.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

namespace catena::dataplane {
namespace {

constexpr std::uint32_t kSpinsBeforeYield = 64;
constexpr std::uint32_t kSpinsBeforeSleep = 4096;
constexpr std::chrono::microseconds kSleep{50};

/// What a worker polls, and where it notes how long that took (may be null).
struct Task {
  Stage* stage;
  std::atomic<std::uint64_t>* busy_ns;
};

class Workers {
 public:
  void fail(Status status) {
    const std::scoped_lock lock(mutex_);
    if (status_.ok()) {
      status_ = std::move(status);
    }
    failed_.store(true, std::memory_order_release);
  }
  Status take_status() { return status_; }

  void work(std::vector<Task> tasks) {
    using Clock = std::chrono::steady_clock;
    std::uint32_t idle_rounds = 0;
    while (!tasks.empty() && !failed_.load(std::memory_order_acquire)) {
      bool worked = false;
      Clock::time_point before = Clock::now();
      for (std::size_t i = 0; i < tasks.size();) {
        Stage& stage = *tasks[i].stage;
        Result<Progress> progress = stage.poll();
        if (!progress.ok()) {
          fail(Status(progress.status().code(),
                      concat("stage ", stage.name(), ": ", std::string(progress.status().message()))));
          return;
        }
        const Clock::time_point after = Clock::now();
        if (*progress != Progress::kIdle) {
          worked = true;
          if (tasks[i].busy_ns != nullptr) {
            tasks[i].busy_ns->fetch_add(static_cast<std::uint64_t>(std::chrono::nanoseconds(after - before).count()),
                                        std::memory_order_relaxed);
          }
        }
        before = after;
        if (*progress == Progress::kFinished) {
          tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
          ++i;
        }
      }
      idle_rounds = worked ? 0 : idle_rounds + 1;
      if (idle_rounds > kSpinsBeforeSleep) {
        std::this_thread::sleep_for(kSleep);
      } else if (idle_rounds > kSpinsBeforeYield) {
        std::this_thread::yield();
      }
    }
  }

 private:
  std::mutex mutex_;
  Status status_;
  std::atomic<bool> failed_{false};
};

}  // namespace

std::vector<std::vector<Stage*>> assign_stages(std::vector<Stage*> const& stages, std::uint32_t workers) {
  const std::size_t groups = std::clamp<std::size_t>(workers, 1, std::max<std::size_t>(1, stages.size()));
  std::vector<std::vector<Stage*>> result(groups);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    result[i * groups / stages.size()].push_back(stages[i]);
  }
  return result;
}

Status run_stages(std::vector<Stage*> const& stages, std::uint32_t workers,
                  std::span<std::atomic<std::uint64_t>> busy_ns) {
  Workers state;
  std::vector<std::thread> threads;
  std::size_t number = 0;
  for (std::vector<Stage*> const& group : assign_stages(stages, workers)) {
    std::vector<Task> tasks;
    for (Stage* stage : group) {
      tasks.push_back({stage, busy_ns.empty() ? nullptr : &busy_ns[number]});
      ++number;
    }
    threads.emplace_back([&state, tasks = std::move(tasks)]() mutable { state.work(std::move(tasks)); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return state.take_status();
}

}  // namespace catena::dataplane
