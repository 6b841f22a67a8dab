// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/isolation/connection.hpp"
#include "pipeline/isolation/process_options.hpp"
#include "pipeline/isolation/protocol.hpp"

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::nf_process {

class Supervisor;

/// The process of NFs in its sandbox: started, watched, and restarted when it ends unasked, violates the protocol or
/// hangs: at once the first time, then after growing pauses. Call order: create() -> add() for each NF, in packet order
/// -> start() -> anything else. NFs are numbered in this order. One thread uses it, unless stated otherwise.
class NfProcess {
 public:
  /// Starts the process. Errors: as sandbox::SandboxedProcess::start().
  static Result<std::unique_ptr<NfProcess>> create(ProcessOptions options);
  /// Kills it.
  ~NfProcess();
  NfProcess(NfProcess const&) = delete;
  NfProcess& operator=(NfProcess const&) = delete;

  /// Adds an NF to the process and returns its description. `outputs`: its permitted outputs, with absolute paths.
  /// Errors: NotFound if the process knows no such NF; the process's own error if it cannot load the NF's file;
  /// DataLoss if the reply cannot be parsed; DeadlineExceeded without a reply for 30 s.
  Result<NfInfo> add(StartRequest wanted, std::vector<nf::NamedOutput> outputs);
  /// Has the process create its NFs and get ready for packets. Precondition: `setup` has the added NFs, in their order;
  /// their outputs are already known. Errors: the NFs' own; DeadlineExceeded if they are not ready after 120 s.
  Status start(Setup const& setup);

  // Replacing the process of a previous session: start_replacement() -> start() -> transfer_state() of the previous one
  // -> start_after(), once its process has ended -> has_started() until true -> start_status().
  /// Its NFs get the state of a previous process, which has the same NFs in the same order. Before start().
  void start_replacement();
  /// Whether all its NFs can transfer their state: NFs with `has_state` are nf::Portable. After start(); any thread.
  bool can_transfer_state(std::vector<bool> const& has_state) const;
  /// After its last packet it transfers its state instead of finishing its NFs. Any thread.
  void transfer_state();
  bool is_transferring_state() const;
  /// Gives its NFs the state left by `before`.
  void start_after(NfProcess& before);
  /// Whether packets can come: its NFs have the state, or will never get it. The latter if the incarnation has ended,
  /// or is ended now because it took too long.
  bool has_started();
  /// For each NF OK, or why it starts without the previous state.
  std::vector<Status> start_status() const;

  /// The new incarnation, if it was not taken yet; else null. Any thread.
  std::shared_ptr<Connection> take_connection();
  /// Whether packets would wait too long: its restart is delayed, or slow. Any thread.
  bool is_down() const;
  /// Ends this incarnation, and no later one, after a protocol violation or hang. Any thread.
  void fail(Connection const& connection, std::string_view why);
  /// This side's end of the notifier, for both rings: readable when the channel has a message.
  int notifier() const;
  std::uint64_t restarts() const;
  /// Number of write requests for outputs that are not its own. Any thread.
  std::uint64_t refusals() const;

  std::string const& group() const;
  /// As passed to start(), after it.
  Setup const& setup() const;

  // Its last reports; any thread. Of NF number `nf`:
  pid_t pid() const;
  std::vector<std::string> start_lines(std::size_t nf) const;
  std::vector<std::pair<std::string, std::uint64_t>> refused_rules(std::size_t nf) const;
  std::vector<nf::Statistic> statistics(std::size_t nf) const;
  std::vector<std::string> end_lines(std::size_t nf) const;
  /// OK, or why it did not finish properly. An error that names no NF belongs to the first.
  Status ended(std::size_t nf) const;

 private:
  explicit NfProcess(std::unique_ptr<Supervisor> supervisor);
  std::unique_ptr<Supervisor> supervisor_;
};

/// Path of the program: beside this process's own program, or in an installation. NotFound with the places searched.
Result<std::string> find_nf_program();

}  // namespace catena::nf_process
