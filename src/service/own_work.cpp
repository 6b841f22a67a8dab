// SPDX-License-Identifier: Apache-2.0
#include "service/own_work.hpp"

#include "base/core/process_work.hpp"

#include <system_error>

namespace catena::service {

OwnWork::OwnWork() : thread_([this] { start_jobs(); }) {
  set_process_work_runner([this](std::function<void()> const& work) { do_and_wait(work); });
}

OwnWork::~OwnWork() {
  set_process_work_runner({});
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void OwnWork::do_and_wait(std::function<void()> const& work) {
  Job job;
  job.work = &work;
  std::unique_lock lock(mutex_);
  waiting_.push_back(&job);
  changed_.notify_all();
  changed_.wait(lock, [&job] { return job.is_done; });
  if (job.thrown) {
    std::rethrow_exception(job.thrown);
  }
}

void OwnWork::start_jobs() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !waiting_.empty() || (is_ending_ && working_ == 0); });
    if (waiting_.empty()) {
      return;
    }
    Job* const job = waiting_.front();
    waiting_.pop_front();
    ++working_;
    lock.unlock();
    try {
      // of its own: to compile takes seconds, in which others need not wait
      std::thread([this, job] { finish(*job); }).detach();
    } catch (std::system_error const&) {  // no more threads
      finish(*job);
    }
    lock.lock();
  }
}

void OwnWork::finish(Job& job) {
  std::exception_ptr thrown;
  try {
    (*job.work)();
  } catch (...) {  // for whoever asked for it
    thrown = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  job.thrown = thrown;
  job.is_done = true;
  --working_;
  changed_.notify_all();
}

}  // namespace catena::service
