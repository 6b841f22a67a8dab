// SPDX-License-Identifier: Apache-2.0
#include "base/sched/workers.hpp"

#include "base/core/log_context.hpp"
#include "base/core/poll_backoff.hpp"

#include <catena/core/text.hpp>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

namespace catena::sched {
namespace {

/// Where sockets say that packets are there, a worker waits for them this long before it inspects the rest of the run.
constexpr int kSocketWaitMs = 10;

/// How often the shares of the workers are inspected.
constexpr std::chrono::milliseconds kBalanceEvery{50};
/// They change where a worker was busy for this part of that time, and where the busiest would then be busy for at most
/// this part of what it is: a stage that moves leaves its data in another core's caches.
constexpr double kBusyEnough = 0.5;
constexpr double kWorthMoving = 0.85;

using Clock = std::chrono::steady_clock;
using Groups = std::vector<std::vector<std::size_t>>;

std::int64_t to_ns(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

std::uint64_t ns_since(Clock::time_point before, Clock::time_point now) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now - before).count());
}

std::uint64_t busiest(Groups const& groups, std::span<const std::uint64_t> busy_ns) {
  std::uint64_t most = 0;
  for (std::vector<std::size_t> const& group : groups) {
    std::uint64_t sum = 0;
    for (const std::size_t stage : group) {
      sum += busy_ns[stage];
    }
    most = std::max(most, sum);
  }
  return most;
}

/// The stages of one run, shared out among workers. Which worker has which stage changes while all of them wait: a
/// stage never has two threads, and what one did is seen by the next.
class Workers {
 public:
  Workers(std::vector<Stage*> const& stages, std::uint32_t workers, std::span<const std::uint32_t> cores)
      : stages_(stages),
        cores_(cores),
        seen_ns_(stages.size()),
        finished_(stages.size()),
        left_(stages.size()),
        groups_(assign_stages(stages.size(), workers)),
        all_wait_(static_cast<std::ptrdiff_t>(groups_.size()), Switch{this}) {
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      seen_ns_[stage] = stages[stage]->busy_ns();
    }
    // with one worker nobody else gives a stage work
    if (groups_.size() == 1 &&
        std::all_of(stages.begin(), stages.end(), [](Stage const* stage) { return stage->is_passive(); })) {
      collect_sockets();
    }
  }

  Status run() {
    std::vector<std::thread> threads;
    const std::size_t workers = groups_.size();  // who runs already may change the groups
    threads.reserve(workers);
    while (threads.size() < workers && start_worker(threads, workers)) {
    }
    for (std::size_t missing = threads.size(); missing < workers; ++missing) {
      all_wait_.arrive_and_drop();  // who runs already may wait for this one
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    return std::move(status_);
  }

 private:
  /// Runs in one thread while all others wait.
  struct Switch {
    Workers* workers;
    void operator()() noexcept {
      if (workers->is_pausing_.exchange(false)) {
        workers->groups_.swap(workers->next_groups_);
      }
    }
  };

  /// False, and the run fails, where the system has no thread for it.
  bool start_worker(std::vector<std::thread>& threads, std::size_t workers) {
    const std::size_t worker = threads.size();
    try {
      threads.emplace_back(in_log_context([this, worker] { work(worker); }));
    } catch (std::system_error const& error) {
      fail(absl::ResourceExhaustedError(concat("worker ", worker + 1, " of ", workers, " cannot be started: ",
                                               error.code().message(), ". Fewer workers (--workers N) need less")));
      return false;
    }
    return true;
  }

  void fail(Status status) {
    const std::scoped_lock lock(mutex_);
    if (status_.ok()) {
      status_ = std::move(status);
    }
    failed_.store(true, std::memory_order_release);
  }

  /// Gives the calling thread, worker number `worker`, the core that is its.
  void pin(std::size_t worker) {
    if (cores_.empty()) {
      return;
    }
    const std::uint32_t core = cores_[worker % cores_.size()];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (const int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set); error != 0) {
      fail(absl::ErrnoToStatus(error, concat("worker ", worker, " cannot be put on core ", core)));
    }
  }

  void work(std::size_t worker) {
    pin(worker);
    PollBackoff backoff;
    Clock::time_point balanced = Clock::now();
    while (left_.load(std::memory_order_acquire) > 0 && !failed_.load(std::memory_order_acquire)) {
      if (is_pausing_.load(std::memory_order_acquire)) {
        all_wait_.arrive_and_wait();
      }
      if (poll(groups_[worker])) {
        backoff.found_work();
      } else {
        backoff.found_nothing();
        rest(backoff);
      }
      if (worker == 0 && groups_.size() > 1 && groups_.size() < stages_.size()) {
        if (const Clock::time_point now = Clock::now(); now - balanced >= kBalanceEvery) {
          balance(ns_since(balanced, now));
          balanced = now;
        }
      }
    }
    all_wait_.arrive_and_drop();
  }

  void rest(PollBackoff const& backoff) {
    if (backoff.should_block() && !sockets_.empty()) {
      wait_for_packets();
    } else {
      backoff.rest();
    }
  }

  /// Anew each time: an NF that takes the place of another one has a process of its own.
  void collect_sockets() {
    sockets_.clear();
    for (Stage const* stage : stages_) {
      for (const int socket : stage->sockets()) {
        sockets_.push_back({socket, POLLIN, 0});
      }
    }
  }

  void wait_for_packets() {
    collect_sockets();
    ::poll(sockets_.data(), sockets_.size(), kSocketWaitMs);
    for (pollfd const& socket : sockets_) {
      if ((socket.revents & ~POLLIN) != 0) {
        // an interface that is down; its error is told once, one that is gone by the stage
        int error = 0;
        socklen_t bytes = sizeof error;
        getsockopt(socket.fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
        std::this_thread::sleep_for(PollBackoff::kLongSleep);
      }
    }
  }

  /// One round. True if a stage had work.
  bool poll(std::vector<std::size_t> const& group) {
    bool worked = false;
    Clock::time_point before = Clock::now();
    for (const std::size_t number : group) {
      if (finished_[number]) {
        continue;
      }
      Stage& stage = *stages_[number];
      LogContext::set_stage(stage.name());
      Result<Progress> progress = stage.poll();
      if (!progress.ok()) {
        fail(Status(progress.status().code(),
                    concat("stage ", stage.name(), ": ", std::string(progress.status().message()))));
        return true;
      }
      const Clock::time_point after = Clock::now();
      if (*progress != Progress::kIdle) {
        worked = true;
        stage.worked(to_ns(before), to_ns(after));
      }
      before = after;
      if (*progress == Progress::kFinished) {
        finished_[number] = 1;
        left_.fetch_sub(1, std::memory_order_acq_rel);
      }
    }
    return worked;
  }

  /// Has the workers change their shares where that is worth it. `passed_ns`: since the last time. The first worker's.
  void balance(std::uint64_t passed_ns) {
    std::vector<std::uint64_t> recent_ns(stages_.size());
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      const std::uint64_t now_ns = stages_[stage]->busy_ns();
      recent_ns[stage] = now_ns - std::exchange(seen_ns_[stage], now_ns);
    }
    Groups better = balance_by_load(recent_ns, groups_.size());
    const auto max_now = static_cast<double>(busiest(groups_, recent_ns));
    const auto max_then = static_cast<double>(busiest(better, recent_ns));
    if (max_now >= kBusyEnough * static_cast<double>(passed_ns) && max_then <= kWorthMoving * max_now) {
      next_groups_ = std::move(better);
      is_pausing_.store(true, std::memory_order_release);
    }
  }

  std::vector<Stage*> const& stages_;
  std::span<const std::uint32_t> cores_;
  std::vector<std::uint64_t> seen_ns_;  ///< how long each stage was busy, when that was last inspected
  std::vector<std::uint8_t> finished_;  ///< each is its worker's
  std::atomic<std::size_t> left_;
  Groups groups_;
  Groups next_groups_;
  std::vector<pollfd> sockets_;  ///< what the one worker waits for when it is idle; none: it polls
  std::atomic<bool> is_pausing_{false};
  std::barrier<Switch> all_wait_;
  std::mutex mutex_;
  Status status_;
  std::atomic<bool> failed_{false};
};

}  // namespace

std::vector<std::vector<std::size_t>> assign_stages(std::size_t stages, std::uint32_t workers) {
  const std::size_t groups = std::clamp<std::size_t>(workers, 1, std::max<std::size_t>(1, stages));
  std::vector<std::vector<std::size_t>> result(groups);
  for (std::size_t i = 0; i < stages; ++i) {
    result[i * groups / stages].push_back(i);
  }
  return result;
}

std::vector<std::vector<std::size_t>> balance_by_load(std::span<const std::uint64_t> busy_ns, std::size_t workers) {
  std::vector<std::size_t> heaviest_first(busy_ns.size());
  std::iota(heaviest_first.begin(), heaviest_first.end(), std::size_t{0});
  std::stable_sort(heaviest_first.begin(), heaviest_first.end(),
                   [&](std::size_t a, std::size_t b) { return busy_ns[a] > busy_ns[b]; });
  std::vector<std::vector<std::size_t>> result(workers);
  std::vector<std::uint64_t> sums(workers);
  for (const std::size_t stage : heaviest_first) {
    std::size_t least = 0;  // and the fewest stages: idle ones are polled, too
    for (std::size_t worker = 1; worker < workers; ++worker) {
      if (std::pair(sums[worker], result[worker].size()) < std::pair(sums[least], result[least].size())) {
        least = worker;
      }
    }
    sums[least] += busy_ns[stage];
    result[least].push_back(stage);
  }
  for (std::vector<std::size_t>& group : result) {
    std::sort(group.begin(), group.end());  // a unit that comes out of one goes on in the next at once
  }
  return result;
}

Status run_stages(std::vector<Stage*> const& stages, std::uint32_t workers, std::span<const std::uint32_t> cores) {
  return Workers(stages, workers, cores).run();
}

}  // namespace catena::sched
