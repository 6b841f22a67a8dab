// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace catena::service {

enum class ChainState { kStarting, kRunning, kStopped, kFinished, kFailed };

std::string_view to_string(ChainState state);

/// All states, in order.
inline constexpr ChainState kChainStates[] = {ChainState::kStarting, ChainState::kRunning, ChainState::kStopped,
                                              ChainState::kFinished, ChainState::kFailed};

/// The states of the run of a chain. Call order: made() -> can_start() -> started() -> returned() -> ended(); stop()
/// at any time, and ended() then without a start. No locks: the caller has one.
class RunLifecycle {
 public:
  explicit RunLifecycle(std::string name) : name_(std::move(name)) {}

  /// The session is made. An error: it could not be, and the run has ended.
  void made(Status const& created);
  /// Cancelled, with the name of the chain, if it was stopped.
  Status can_start() const;
  void started();
  void stop() { is_stopped_ = true; }
  /// The run of the session is over, with this result.
  void returned(Status status) { status_ = std::move(status); }
  /// The session has ended. `is_followed`: another one has replaced it.
  void ended(bool is_followed);

  std::string const& name() const { return name_; }
  ChainState state() const { return state_; }
  /// Of the making, or of the run.
  Status const& status() const { return status_; }
  /// The session is made, or could not be.
  bool is_made() const { return is_made_; }
  bool is_started() const { return is_started_; }
  bool is_stopped() const { return is_stopped_; }
  bool is_running() const { return state_ == ChainState::kRunning && !is_stopped_; }
  bool has_ended() const { return state_ != ChainState::kStarting && state_ != ChainState::kRunning; }

 private:
  std::string name_;
  ChainState state_ = ChainState::kStarting;
  Status status_;
  bool is_made_ = false;
  bool is_started_ = false;
  bool is_stopped_ = false;
};

}  // namespace catena::service
