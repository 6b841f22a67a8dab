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

  void work(std::vector<Stage*> stages) {
    std::uint32_t idle_rounds = 0;
    while (!stages.empty() && !failed_.load(std::memory_order_acquire)) {
      bool worked = false;
      for (std::size_t i = 0; i < stages.size();) {
        Result<Progress> progress = stages[i]->poll();
        if (!progress.ok()) {
          fail(Status(progress.status().code(),
                      concat("stage ", stages[i]->name(), ": ", std::string(progress.status().message()))));
          return;
        }
        worked = worked || *progress != Progress::kIdle;
        if (*progress == Progress::kFinished) {
          stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(i));
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

Status run_stages(std::vector<Stage*> const& stages, std::uint32_t workers) {
  Workers state;
  std::vector<std::thread> threads;
  for (auto& group : assign_stages(stages, workers)) {
    threads.emplace_back([&state, group = std::move(group)]() mutable { state.work(std::move(group)); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return state.take_status();
}

}  // namespace catena::dataplane
