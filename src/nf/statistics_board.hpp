// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace catena::nf {

/// An NF's own statistics for other threads. An NF belongs to one thread at a time and may count in any form, so its
/// thread publishes a copy here on request.
class StatisticsBoard {
 public:
  /// Called often by the NF's thread: publishes the current statistics if a reader requested them.
  void answer(Nf const& nf) {
    if (is_asked_.load(std::memory_order_relaxed)) {
      publish(nf);
    }
  }
  /// Called by the NF's thread: publishes the current statistics.
  void publish(Nf const& nf) {
    std::vector<Statistic> statistics = nf.statistics();
    const std::scoped_lock lock(mutex_);
    last_ = std::move(statistics);
    is_asked_.store(false, std::memory_order_relaxed);
    ++published_;
    changed_.notify_all();
  }
  /// Any thread: the current statistics, or the last published ones if the NF's thread does not answer within
  /// kPatience.
  std::vector<Statistic> read() const {
    std::unique_lock lock(mutex_);
    const std::uint64_t before = published_;
    is_asked_.store(true, std::memory_order_relaxed);
    changed_.wait_for(lock, kPatience, [&] { return published_ != before || has_ended_; });
    return last_;
  }
  /// Called by the NF's thread: as publish(), for the last time, so that readers no longer wait.
  void end(Nf const& nf) {
    publish(nf);
    const std::scoped_lock lock(mutex_);
    has_ended_ = true;
  }

 private:
  static constexpr std::chrono::milliseconds kPatience{2};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::atomic<bool> is_asked_{false};
  std::vector<Statistic> last_;
  std::uint64_t published_ = 0;
  bool has_ended_ = false;
};

}  // namespace catena::nf
