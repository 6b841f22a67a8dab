// SPDX-License-Identifier: Apache-2.0
#include "service/claims.hpp"

#include <catena/core/text.hpp>

namespace catena::service {

Claims::Claim::~Claim() {
  if (claims_ != nullptr) {
    std::map<std::string, Operation>::node_type ended;  // destroyed without the mutex: a run takes time to end
    const std::lock_guard lock(claims_->mutex_);
    ended = claims_->operations_.extract(name_);
    claims_->changed_.notify_all();
  }
}

Status Claims::taken(std::string const& name) {
  return absl::AbortedError(concat("chain '", name, "' is being changed by another request; try again"));
}

Result<Claims::Claim> Claims::take(std::string const& name) {
  const std::lock_guard lock(mutex_);
  if (!operations_.emplace(name, Operation()).second) {
    return taken(name);
  }
  return Claim(*this, name);
}

void Claims::want(std::string const& name, Wanted wanted) {
  const std::lock_guard lock(mutex_);
  std::swap(operations_[name].wanted, wanted);
}

void Claims::set_start(std::string const& name, Start start) {
  const std::lock_guard lock(mutex_);
  std::swap(operations_[name].start, start);  // the old one is destroyed without the mutex
  changed_.notify_all();
}

bool Claims::contains(std::string const& name) const {
  const std::lock_guard lock(mutex_);
  return operations_.contains(name);
}

bool Claims::is_empty() const {
  const std::lock_guard lock(mutex_);
  return operations_.empty();
}

Claims::Start Claims::start_of(std::string const& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = operations_.find(name);
  return found == operations_.end() ? Start() : found->second.start;
}

bool Claims::wait_for_end(std::string const& name, Start const& start, std::chrono::milliseconds limit) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] {
    const auto found = operations_.find(name);
    return found == operations_.end() || (found->second.start.run != nullptr && found->second.start != start);
  });
}

std::vector<std::shared_ptr<ChainRun>> Claims::starting_runs() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ChainRun>> runs;
  for (auto const& [name, operation] : operations_) {
    if (operation.start.run != nullptr) {
      runs.push_back(operation.start.run);
    }
  }
  return runs;
}

std::map<std::string, Claims::Wanted> Claims::wanted() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Wanted> all;
  for (auto const& [name, operation] : operations_) {
    all[name] = operation.wanted;
  }
  return all;
}

}  // namespace catena::service
