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

/// What users have of the service's memory and time while their files are read. Privileged callers have what
/// `catena run` has.
namespace catena::service {

/// Of a chain file that a thread reads for `caller`.
nf::YamlLimits chain_file_limits(Caller const& caller);
/// Of other YAML files, which NFs read.
nf::YamlLimits yaml_limits(Caller const& caller);

/// Lets one thread of each user at a time do something. Any thread.
class UserTurns {
 public:
  /// The turn of a user, as long as this lives.
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

  /// Waits while another thread has the user's turn. Cancelled where `gone` ends the wait.
  Result<Turn> take(uid_t user, std::stop_token const& gone);

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::set<uid_t> taken_;
};

}  // namespace catena::service
