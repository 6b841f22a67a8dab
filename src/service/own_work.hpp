// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace catena::service {

/// Does the work of the process (see core/process_work.hpp) with the rights of the service, for threads with the rights
/// of a user: each job in its own thread, started by a thread that never had other rights. At most one exists.
class OwnWork {
 public:
  OwnWork();
  /// After the end of the last thread with work for it.
  ~OwnWork();
  OwnWork(OwnWork const&) = delete;
  OwnWork& operator=(OwnWork const&) = delete;

 private:
  struct Job {
    std::function<void()> const* work = nullptr;
    bool is_done = false;
    std::exception_ptr thrown;  ///< by the work
  };
  void do_and_wait(std::function<void()> const& work);
  void start_jobs();
  void finish(Job& job);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job*> waiting_;
  int working_ = 0;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace catena::service
