// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/chain_set.hpp"

#include <catena/core/text.hpp>

#include <mutex>
#include <string>
#include <utility>

namespace catena::service {

/// A name reserved by one operation, for the lifetime of this object.
class ChainSet::ChainLock {
 public:
  /// With the set's mutex, so that a name found free still is. Aborted if another operation has the name; Unavailable
  /// if the service is ending.
  static Result<ChainLock> take(ChainSet& set, std::string const& name, ValidatedSpec* wanted) {
    if (set.is_ending_) {
      return absl::UnavailableError("the service is ending");
    }
    const std::lock_guard lock(set.chain_locks_mutex_);
    if (!set.claimed_.emplace(name, Claimed{wanted}).second) {
      return absl::AbortedError(concat("chain '", name, "' is being changed by another request; try again"));
    }
    return ChainLock(set, name);
  }
  ~ChainLock() {
    if (set_ != nullptr) {
      std::map<std::string, Claimed>::node_type ended;  // destroyed without the mutex: a run takes time to end
      const std::lock_guard lock(set_->chain_locks_mutex_);
      ended = set_->claimed_.extract(name_);
      set_->chain_lock_ended_.notify_all();
    }
  }
  ChainLock(ChainLock&& other) noexcept : set_(std::exchange(other.set_, nullptr)), name_(std::move(other.name_)) {}
  ChainLock& operator=(ChainLock&&) = delete;

 private:
  ChainLock(ChainSet& set, std::string name) : set_(&set), name_(std::move(name)) {}

  ChainSet* set_;
  std::string name_;
};

}  // namespace catena::service
