// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/ipc/frames.hpp"
#include "pipeline/isolation/file_broker.hpp"
#include "pipeline/isolation/incarnation.hpp"
#include "pipeline/isolation/process_options.hpp"
#include "pipeline/isolation/process_reports.hpp"
#include "pipeline/isolation/protocol.hpp"
#include "pipeline/isolation/state_transfer.hpp"
#include "pipeline/isolation/supervisor_signal.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/nf.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

namespace catena::nf_process {

/// An NF added to the process.
struct AddedNf {
  StartRequest request;
  NfInfo info;
  std::vector<nf::NamedOutput> outputs;
};

/// Starts a process of NFs, watches it and starts it again: the inside of NfProcess, which see for the order of calls.
class Supervisor {
 public:
  explicit Supervisor(ProcessOptions own_options);
  /// Ends the process.
  ~Supervisor();
  Supervisor(Supervisor const&) = delete;
  Supervisor& operator=(Supervisor const&) = delete;

  /// Starts the process. Errors: as Incarnation::start().
  Status launch();
  /// As NfProcess::add().
  Result<NfInfo> add(StartRequest request, std::vector<nf::NamedOutput> outputs);
  /// As NfProcess::start().
  Status start(Setup const& wanted);

  ProcessOptions const options;
  OutputRights rights;
  std::vector<AddedNf> nfs;
  FileDescriptor notifier;  ///< this side's end; each incarnation replaces the socket under this number
  Setup setup;
  SupervisorSignal signal;
  ProcessReports reports;
  StateTransfer transfer;

 private:
  Result<ipc::Frame> receive(Incarnation& incarnation, Incarnation::Clock::time_point deadline);
  Result<NfInfo> describe(Incarnation& incarnation, StartRequest const& nf);
  /// `is_refused`: where given, tells that the error is the NF's own.
  Status start_nfs(Incarnation& incarnation, Setup const& with, bool* is_refused = nullptr);
  /// Until it ends; returns why. OK: it has finished.
  Status watch(Incarnation& incarnation);
  /// OK: no reason, or it concerned an earlier incarnation.
  Status why_stopped(Incarnation const& incarnation);
  /// Gives the process memory for a state that it transfers.
  Status make_room(Incarnation const& incarnation, StateOf const& said);
  static Status let_begin(Incarnation const& incarnation, std::vector<StateTransfer::State> const& states);
  /// True: this was its last message.
  Result<bool> take(Incarnation& incarnation, ipc::Frame const& frame);
  /// No thread, or no memory, is no reason for this process to end.
  Status try_again();
  Status begin_again();
  /// Whether another incarnation runs. `why`: the end of the last one. `next_pause`: before the next attempt.
  bool start_again(Status why, std::chrono::milliseconds& next_pause);
  /// In its own thread.
  void keep();

  std::unique_ptr<Incarnation> now_;  ///< the thread's, once it runs
  std::thread thread_;
  std::optional<std::stop_callback<std::function<void()>>> on_give_up_;  ///< until it has started
};

}  // namespace catena::nf_process
