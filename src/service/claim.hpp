// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/chain_set.hpp"

#include <catena/core/text.hpp>

#include <mutex>
#include <string>
#include <utility>

namespace catena::service {

/// A name that one operation has for itself, as long as this is there.
class ChainSet::Claim {
 public:
  /// With the set's mutex, so that what was found to be free still is. Aborted where another one has the name, or the
  /// service ends.
  static Result<Claim> take(ChainSet& set, std::string const& name, Prepared* wanted) {
    if (set.is_ending_) {
      return absl::UnavailableError("the service is ending");
    }
    const std::lock_guard lock(set.claims_mutex_);
    if (!set.claimed_.emplace(name, Claimed{wanted}).second) {
      return absl::AbortedError(concat("chain '", name, "' is being changed by another request; try again"));
    }
    return Claim(set, name);
  }
  ~Claim() {
    if (set_ != nullptr) {
      std::map<std::string, Claimed>::node_type ended;  // destroyed without the mutex: a run takes time to end
      const std::lock_guard lock(set_->claims_mutex_);
      ended = set_->claimed_.extract(name_);
      set_->claim_ended_.notify_all();
    }
  }
  Claim(Claim&& other) noexcept : set_(std::exchange(other.set_, nullptr)), name_(std::move(other.name_)) {}
  Claim& operator=(Claim&&) = delete;

 private:
  Claim(ChainSet& set, std::string name) : set_(&set), name_(std::move(name)) {}

  ChainSet* set_;
  std::string name_;
};

}  // namespace catena::service
