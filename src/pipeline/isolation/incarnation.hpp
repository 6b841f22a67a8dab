// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/ipc/frames.hpp"
#include "base/sandbox/control_group.hpp"
#include "base/sandbox/reserved_user.hpp"
#include "base/sandbox/sandbox.hpp"
#include "pipeline/isolation/connection.hpp"
#include "pipeline/isolation/file_broker.hpp"
#include "pipeline/isolation/process_options.hpp"
#include "pipeline/isolation/protocol.hpp"

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace catena::nf_process {

/// One process of NFs in its sandbox, from its start to its end. One thread at a time uses it.
class Incarnation {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts the process. `options` and `rights` outlive it. The socket for its notifications replaces the descriptor
  /// `notifier`. Errors: as sandbox::SandboxedProcess::start(); ResourceExhausted without sockets.
  static Result<std::unique_ptr<Incarnation>> start(ProcessOptions const& options, OutputRights& rights, int notifier);
  /// Ends the process, and closes its outputs: a replacement may then open them.
  ~Incarnation();
  Incarnation(Incarnation const&) = delete;
  Incarnation& operator=(Incarnation const&) = delete;

  /// Errors: as nf_process::send().
  Status send(Call call, std::string_view text, int fd = -1) const;
  /// The next message. While it waits for one and `stop` is readable, it calls `stopped`, whose errors it returns.
  /// DeadlineExceeded after `deadline`; Unavailable, with the reason, if the process has ended; as
  /// ipc::receive_frame().
  Result<ipc::Frame> receive(Clock::time_point deadline, int stop, std::function<Status()> const& stopped);
  /// Asks for the description of an NF. Errors: the process's own; DataLoss for another reply; as receive().
  Result<NfInfo> describe(StartRequest const& nf, int stop, std::function<Status()> const& stopped);

  /// Creates the memory for its packets, and sends it. ResourceExhausted if memory runs out; as send().
  Status connect(Setup const& setup);
  /// Its memory, shared with it; null before connect().
  std::shared_ptr<Connection> const& connection() const { return connection_; }
  /// Connects it to the device of `setup`, again if the device was lost, or says why not. DataLoss if it has too
  /// many devices; as send().
  Status give_device(Setup const& setup);
  /// Executes a request for an output. Errors: as FileBroker::serve().
  Status serve_output(ipc::Frame const& frame) { return outputs_.serve(control_.get(), frame); }
  /// It may use so much more memory, which others share with it.
  void allow(std::uint64_t bytes) const;
  /// Waits for a moment until it has exited by itself.
  void wait_for_exit() const;
  pid_t pid() const { return process_->pid(); }

 private:
  /// Removes the group with the rights of this process: the calling thread may have fewer.
  struct RemoveGroup {
    void operator()(sandbox::ControlGroup* group) const;
  };

  Incarnation(ProcessOptions const& options, OutputRights& rights, FileDescriptor control)
      : options_(&options), control_(std::move(control)), outputs_(rights) {}
  Status start_in(sandbox::SandboxOptions sandbox);
  void make_group(sandbox::SandboxOptions const& sandbox);
  void warn_of_no_group(Status const& why) const;
  Status how_it_ended() const;

  ProcessOptions const* options_;
  sandbox::ProcessUser user_;  ///< if it is not one of `options_`; outlives the process
  std::unique_ptr<sandbox::ControlGroup, RemoveGroup>
      group_;  ///< null: its resource limits are all; outlives the process
  std::unique_ptr<sandbox::SandboxedProcess> process_;
  FileDescriptor control_;
  ipc::FrameReader reader_;
  std::vector<FileDescriptor> devices_;  ///< its sockets to device servers; hung up once the server has ended
  std::shared_ptr<Connection> connection_;
  FileBroker outputs_;
  bool has_device_memory_ = false;  ///< it was allowed more for a device
};

}  // namespace catena::nf_process
