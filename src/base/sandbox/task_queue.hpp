// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <functional>
#include <future>
#include <mutex>
#include <vector>

#include "base/core/file_descriptor.hpp"

namespace catena::sandbox {

/// Tasks from other threads, run by one thread with its own rights.
class TaskQueue {
 public:
  TaskQueue();
  /// False: the system has no descriptor for it, and it is unusable.
  explicit operator bool() const { return static_cast<bool>(event_); }

  /// Returns the result of `task` after the polling thread has run it. Called by any other thread while that thread
  /// polls. `task` must not wait.
  Status run(std::function<Status()> task);

  /// Readable for poll() when tasks are pending.
  int fd() const { return event_.get(); }
  /// Runs the pending tasks; in the polling thread.
  void run_all();

 private:
  FileDescriptor event_;
  std::mutex mutex_;
  std::vector<std::packaged_task<Status()>> tasks_;
};

}  // namespace catena::sandbox
