// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/yaml_limits.hpp"
#include "service/caller.hpp"

#include <catena/core/status.hpp>

#include <condition_variable>
#include <mutex>
#include <set>
#include <stop_token>
#include <utility>

/// Limits of the service's memory and time for reading the files of users. Privileged callers have the limits of
/// `catena run`.
namespace catena::service {

/// For a chain file read by a thread for `caller`.
nf::YamlLimits chain_file_limits(Caller const& caller);
/// For other YAML files, read by NFs.
nf::YamlLimits yaml_limits(Caller const& caller);

/// One turn per user, held by one thread at a time. Any thread.
class UserTurns {
 public:
  /// The turn of a user, for the lifetime of this object.
  class Turn {
   public:
    Turn(UserTurns& turns, uid_t user) : turns_(&turns), user_(user) {}
    ~Turn();
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)), user_(other.user_) {}
    Turn& operator=(Turn&&) = delete;

   private:
    UserTurns* turns_;
    uid_t user_;
  };

  /// Waits while another thread has the user's turn. Cancelled if `gone` ends the wait.
  Result<Turn> take(uid_t user, std::stop_token const& gone);

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::set<uid_t> taken_;
};

}  // namespace catena::service
