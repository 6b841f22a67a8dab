// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace catena::runtime {

/// Interruptible sleep: a thread waits here until another one calls end(). Any thread.
class Pause {
 public:
  /// False once end() was called.
  bool sleep(std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex_);
    return !ended_.wait_for(lock, time, [this] { return is_over_; });
  }
  void end() {
    {
      const std::scoped_lock lock(mutex_);
      is_over_ = true;
    }
    ended_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
};

}  // namespace catena::runtime
