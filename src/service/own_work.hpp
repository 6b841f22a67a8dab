// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace catena::service {

/// Does the work of the process (see core/process_work.hpp) with the rights of the service, for threads that have those
/// of a user: each in a thread of its own, made by one that never had other rights. There is at most one.
class OwnWork {
 public:
  OwnWork();
  /// After the last thread that has work for it has ended.
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
