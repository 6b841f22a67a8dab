// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/core/file_descriptor.hpp"
#include "base/core/process_needs.hpp"
#include "base/sandbox/reserved_user.hpp"
#include "base/sandbox/sandbox.hpp"
#include "stack/process/settings.hpp"
#include "stack/process/stack_report.hpp"

namespace catena::stack {

struct StackProcessOptions {
  StackSettings settings;
  std::vector<ProcessNeeds> needs;  ///< of settings.engines, where settings.tx.mode uses them
  std::string program;              ///< catena-stack; empty: beside this program
  std::vector<int> cpus;            ///< its CPUs; empty: the caller's
};

/// A stack's process in a sandbox. It has its port, its supervisor's socket and the segments of applications, and opens
/// nothing itself except for its copy engine. Any thread.
class StackProcess {
 public:
  /// Starts the process and waits until it serves. `port`: the descriptor of its TapPort, which remains the caller's.
  /// Errors: of SandboxedProcess::start() and StackLoop::create(); Unavailable: it does not answer.
  static Result<std::unique_ptr<StackProcess>> start(StackProcessOptions const& options, int port);
  /// Ends it; all connections are lost.
  ~StackProcess();
  StackProcess(StackProcess const&) = delete;
  StackProcess& operator=(StackProcess const&) = delete;

  /// Lets the application at the other end of `connection`, which remains the caller's and is of `process`, attach: it
  /// gets memory of its own. Errors of send_application().
  Status admit(int connection, pid_t process);
  /// The last report, of up to 200 ms ago.
  StackReport report() const;
  /// Readable when the process has ended. Belongs to this object.
  int pidfd() const { return process_->pidfd(); }
  pid_t pid() const { return process_->pid(); }

 private:
  StackProcess(sandbox::ProcessUser user, std::unique_ptr<sandbox::SandboxedProcess> process, FileDescriptor control,
               SegmentShape const& shape);
  void read_reports();

  sandbox::ProcessUser user_;  ///< outlives the process
  std::unique_ptr<sandbox::SandboxedProcess> process_;
  FileDescriptor control_;
  SegmentShape shape_;
  std::mutex sending_;  ///< the two frames of an application stay together
  mutable std::mutex reading_;
  StackReport report_{};
  std::thread reader_;
};

}  // namespace catena::stack
