// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "pipeline/isolation/protocol.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace catena::nf_process {

struct Connection;

/// State that crosses from the NFs of a process to the NFs of its replacement, which has the same NFs in the same
/// order. Both processes have such an object: NFs of the old one leave their state in its object, and NFs of the new
/// one take it. An incarnation is known by its connection. Any thread.
class StateTransfer {
 public:
  struct State {
    StateOf of;
    FileDescriptor memory;
  };

  // In the object of the old process:
  /// After the last packet, NFs leave their state instead of finishing.
  void let_leave();
  bool leaves() const;
  /// Keeps the memory for the state of an NF, and returns its descriptor. `is_last`: no more packets follow. DataLoss
  /// if the NF was not to leave state, or has already, or if all are larger than kMaxStateBytes.
  Result<int> leave(StateOf const& said, FileDescriptor memory, bool is_last);
  /// Forgets the state left: the process has not ended properly.
  void forget_left();

  // In the object of the new process:
  /// Its first incarnation waits for state before its first packet.
  void expect() { expects_ = true; }
  bool expects() const { return expects_; }
  /// The incarnation has started, and waits for state. Null: no incarnation waits.
  void set_waiting(Connection const* connection);
  /// Takes the state left in `before`, whose process has ended, for `nfs` NFs. The supervisor gives it to the
  /// incarnation.
  void take(StateTransfer& before, std::size_t nfs);
  /// The state to give now to the incarnation with this connection; nullopt: nothing, or not yet. Once.
  std::optional<std::vector<State>> states_for(Connection const* connection);
  /// The incarnation has taken its state: the result for each NF. DataLoss if it was not given any.
  Status set_begun(Connection const* connection, std::vector<Status> results);
  /// Whether the NFs have their state or will never get it. After a time limit, `late` becomes the connection of the
  /// incarnation that has not taken its state; the caller has to end it.
  bool has_begun(Connection const*& late);
  /// For each NF OK, or why it begins without the previous state. `is_portable`: of each NF, whether it can have state.
  std::vector<Status> results(std::vector<bool> const& is_portable) const;

 private:
  mutable std::mutex mutex_;
  bool leaves_ = false;
  std::vector<State> left_;
  bool expects_ = false;
  std::vector<State> to_take_;
  bool is_complete_ = false;                  ///< to_take_ is
  bool was_given_ = false;                    ///< to_take_ was, to the waiting incarnation
  Connection const* waiting_ = nullptr;       ///< connection of the incarnation that waits for state
  std::optional<std::vector<Status>> begun_;  ///< result for each NF
  std::vector<bool> had_state_;               ///< of each NF
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace catena::nf_process
