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

#include "core/file_descriptor.hpp"
#include "sandbox/output.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/task_queue.hpp"

namespace catena::sandbox {

/// Starts bubblewrap, reads what comes out of the sandbox and ends it, in a thread that lives as long as the sandbox
/// may: the kernel takes the end of the thread that started a process for the end of its parent. That thread has the
/// rights of the caller of start(), which the callers of the other functions may not have.
///
/// There are three processes: bubblewrap outside, a child of this process; the first one of the pid namespace, which is
/// bubblewrap too, and with which everything in the sandbox ends; and the program.
class SandboxedProcess::Keeper {
 public:
  explicit Keeper(SandboxOptions options);
  /// As ~SandboxedProcess().
  ~Keeper();
  Keeper(Keeper const&) = delete;
  Keeper& operator=(Keeper const&) = delete;

  /// Whether the program was executed; once.
  Status start();

  pid_t pid() const { return program_; }
  int pidfd() const { return outer_fd_.get(); }
  Status kill();
  Result<int> wait(std::chrono::milliseconds limit);

 private:
  using Clock = std::chrono::steady_clock;

  void run(std::promise<Status> started);
  Status launch();
  Status spawn_bwrap(int gate);
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
  FileDescriptor status_;  ///< bubblewrap writes to it until it ends, and would die if nobody had the other end
  FileDescriptor output_;  ///< does not block
  std::string unsorted_;   ///< what came out while it was started
  std::mutex mutex_;
  std::optional<int> exit_;  ///< under mutex_
  TaskQueue tasks_;          ///< of the thread
  bool is_ending_ = false;   ///< in the thread
  std::thread thread_;
};

}  // namespace catena::sandbox
