// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/core/file_descriptor.hpp"
#include "base/sandbox/output.hpp"
#include "base/sandbox/sandbox.hpp"
#include "base/sandbox/task_queue.hpp"

namespace catena::sandbox {

/// Starts bubblewrap, reads the sandbox's output and ends the sandbox, in a thread that lives as long as the sandbox.
/// The kernel treats the end of the thread that started a process as the end of its parent. The thread has the rights
/// of the caller of start(); callers of the other functions may not have these rights.
///
/// The sandbox has three processes: bubblewrap outside, a child of this process; the first process of the pid
/// namespace, also bubblewrap, whose end ends everything in the sandbox; and the program.
class SandboxedProcess::SandboxSupervisor {
 public:
  explicit SandboxSupervisor(SandboxOptions options);
  /// As ~SandboxedProcess().
  ~SandboxSupervisor();
  SandboxSupervisor(SandboxSupervisor const&) = delete;
  SandboxSupervisor& operator=(SandboxSupervisor const&) = delete;

  /// OK if the program was executed. Called once.
  Status start();

  pid_t pid() const { return program_; }
  int pidfd() const { return outer_fd_.get(); }
  Status kill();
  Result<int> wait(std::chrono::milliseconds limit);

 private:
  using Clock = std::chrono::steady_clock;

  void run(std::promise<Status> started);
  Status launch();
  Status spawn_bwrap(int filter);
  Status admit(int filter, int filter_pipe);
  Status await_namespace(Clock::time_point deadline);
  Status await_program(Clock::time_point deadline);
  Status explain();
  bool has_ended() const;
  bool read_output();
  void drain_output();
  void serve(bool is_open);
  void finish_lines(bool is_open);
  Status kill(FileDescriptor const& process);
  Status end();

  SandboxOptions options_;
  LineSplitter lines_;
  pid_t outer_ = 0;
  pid_t program_ = 0;
  FileDescriptor outer_fd_;  ///< of bubblewrap outside
  FileDescriptor first_fd_;  ///< of the namespace's first process
  pid_t first_ = 0;
  FileDescriptor status_;  ///< written by bubblewrap until it ends; it would die if the other end were closed
  FileDescriptor output_;  ///< non-blocking
  std::string unsorted_;   ///< output during the start
  std::mutex mutex_;
  std::optional<int> exit_;  ///< protected by mutex_
  TaskQueue tasks_;          ///< run by thread_
  bool is_ending_ = false;   ///< used by thread_ only
  std::thread thread_;
};

}  // namespace catena::sandbox
