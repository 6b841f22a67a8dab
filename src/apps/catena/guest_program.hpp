// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/core/file_descriptor.hpp"

namespace catena::cli {

/// A program and all processes started by it, daemons included: a process in between waits for all. One thread.
class GuestProgram {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  /// Prepares `words`, the program and its arguments. Call it before other threads are started. Errors: of
  /// check_loads_libraries(); Unavailable: no process.
  static Result<GuestProgram> prepare(std::vector<std::string> const& words);
  GuestProgram(GuestProgram&&) = default;
  GuestProgram& operator=(GuestProgram&&) = default;
  ~GuestProgram() = default;

  /// Whether `pid` is one of its processes.
  bool has(pid_t pid) const;
  /// Executes it with these variables in addition to this process's. Unavailable: it ended before.
  Status start(Environment const& environment);
  /// Passes SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 on, and returns when all its processes have ended:
  /// the program's exit status, or 128 + the signal's number. After SIGINT and SIGTERM, its
  /// daemons get the signal, too.
  int wait();

 private:
  GuestProgram(pid_t pid, FileDescriptor start, FileDescriptor signals)
      : pid_(pid), start_(std::move(start)), signals_(std::move(signals)) {}

  pid_t pid_;             ///< of the process between
  FileDescriptor start_;  ///< takes the environment; closed without one, the process ends
  FileDescriptor signals_;
};

}  // namespace catena::cli
