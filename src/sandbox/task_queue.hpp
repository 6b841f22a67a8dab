// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <functional>
#include <future>
#include <mutex>
#include <vector>

#include "core/file_descriptor.hpp"

namespace catena::sandbox {

/// What other threads have one thread do, with the rights of that one.
class TaskQueue {
 public:
  TaskQueue();
  /// False: the system has no descriptor for it, and nothing works.
  explicit operator bool() const { return static_cast<bool>(event_); }

  /// What `task` returns, when the thread has done it. Any other thread, as long as the thread polls. `task` must not
  /// wait.
  Status run(std::function<Status()> task);

  /// Readable for poll() when there are tasks.
  int fd() const { return event_.get(); }
  /// Does those that there are; in the thread.
  void run_all();

 private:
  FileDescriptor event_;
  std::mutex mutex_;
  std::vector<std::packaged_task<Status()>> tasks_;
};

}  // namespace catena::sandbox
