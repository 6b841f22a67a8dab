// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"

#include <catena/core/status.hpp>

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace catena::nf_process {

struct Connection;

/// A new eventfd. ResourceExhausted with the system's reason.
Result<FileDescriptor> make_event();
/// Time until `deadline`, in ms, as poll() takes it.
int poll_time(std::chrono::steady_clock::time_point deadline);

/// Requests of other threads to the supervisor of an NF process: to end, to end one incarnation, or to look for new
/// work. The supervisor polls fd(). Any thread, unless stated otherwise.
class SupervisorSignal {
 public:
  /// ResourceExhausted with the system's reason.
  Status open();
  /// Readable after a call of one of the three functions below, until the supervisor calls acknowledge().
  int fd() const { return event_.get(); }

  /// The supervisor is to end its incarnation, and to start no other.
  void stop();
  bool is_stopping() const;
  /// The supervisor is to end this incarnation and no later one.
  void fail(Connection const& connection, std::string_view why);
  /// There is new work.
  void ring() const;

  // Of the supervisor:
  /// Cancelled once stop() was called. fd() then stays readable.
  Status acknowledge();
  /// Aborted with the reason if the incarnation with this connection is to end. Forgets requests about others.
  Status failure_of(Connection const* connection);
  /// Waits. False if stop() ended the wait. Forgets requests about incarnations, as no incarnation runs.
  bool wait(std::chrono::milliseconds time);
  /// Forgets requests about an incarnation that has ended.
  void forget();

 private:
  void acknowledge_locked() const;

  FileDescriptor event_;
  mutable std::mutex mutex_;
  bool is_stopping_ = false;
  std::string failure_;                            ///< why an incarnation must end
  Connection const* failed_connection_ = nullptr;  ///< its connection
};

}  // namespace catena::nf_process
