// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "base/core/file_descriptor.hpp"
#include "stack/port/interface.hpp"
#include "stack/port/tap_port.hpp"
#include "stack/process/stack_process.hpp"

namespace catena::stack {

struct StackHostOptions {
  StackProcessOptions process;
  std::string interface = "catena0";        ///< a TAP, made where it is missing
  std::vector<InterfaceAddress> addresses;  ///< of the host at it
  /// Whether a process of this number may attach. Called by a thread of the host.
  std::function<bool(pid_t)> may_attach;
};

/// A stack and the door to it: keeps its interface, restarts its process, and admits applications by a Unix domain
/// socket. Any thread.
class StackHost {
 public:
  /// `door`: a listening socket. Errors: of check_networks(), TapPort::open(), bring_up() and StackProcess::start().
  static Result<std::unique_ptr<StackHost>> start(StackHostOptions options, FileDescriptor door);
  /// Ends the stack. Applications lose their connections.
  ~StackHost();
  StackHost(StackHost const&) = delete;
  StackHost& operator=(StackHost const&) = delete;

  /// Of the running process; numbers begin again with each.
  StackReport report() const;
  /// How often the process has ended and was replaced.
  std::uint32_t restarts() const { return restarts_; }

 private:
  StackHost(StackHostOptions options, FileDescriptor door, std::unique_ptr<TapPort> port,
            std::unique_ptr<StackProcess> process);
  void serve();
  void let_in();
  void restart();

  StackHostOptions options_;
  FileDescriptor door_;
  FileDescriptor stop_;  ///< an eventfd
  std::unique_ptr<TapPort> port_;
  mutable std::mutex mutex_;
  std::unique_ptr<StackProcess> process_;  ///< protected by mutex_ against report()
  std::atomic<std::uint32_t> restarts_ = 0;
  std::thread thread_;
};

}  // namespace catena::stack
