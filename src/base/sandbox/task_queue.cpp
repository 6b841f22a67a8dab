// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/task_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace catena::sandbox {

TaskQueue::TaskQueue() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Status TaskQueue::run(std::function<Status()> task) {
  std::packaged_task<Status()> packaged(std::move(task));
  std::future<Status> done = packaged.get_future();
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(packaged));
  }
  // cannot fail: the sum of events is far below the largest number
  const std::uint64_t one = 1;
  static_cast<void>(::write(event_.get(), &one, sizeof one));
  return done.get();
}

void TaskQueue::run_all() {
  std::uint64_t events = 0;
  static_cast<void>(::read(event_.get(), &events, sizeof events));
  std::vector<std::packaged_task<Status()>> tasks;
  {
    const std::scoped_lock lock(mutex_);
    tasks.swap(tasks_);
  }
  for (std::packaged_task<Status()>& task : tasks) {
    task();
  }
}

}  // namespace catena::sandbox
