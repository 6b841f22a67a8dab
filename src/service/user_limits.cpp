// SPDX-License-Identifier: Apache-2.0
#include "service/user_limits.hpp"

namespace catena::service {
namespace {

/// A parser takes many times the memory of its file: one of all users' is at work at a time.
std::mutex& parse_turn() {
  static std::mutex turn;
  return turn;
}

}  // namespace

nf::YamlLimits chain_file_limits(Caller const& caller) {
  // room for all rows of a graph and all backends of a load balancer; a chain keeps it as long as it is there
  constexpr std::size_t kBytes = std::size_t{1} << 20U;
  constexpr std::size_t kNodes = std::size_t{64} << 10U;
  return has_other_rights(caller) ? nf::YamlLimits{kBytes, kNodes, &parse_turn()} : nf::YamlLimits{};
}

nf::YamlLimits yaml_limits(Caller const& caller) {
  // room for all associations that an NF may have
  constexpr std::size_t kBytes = std::size_t{4} << 20U;
  constexpr std::size_t kNodes = std::size_t{256} << 10U;
  return has_other_rights(caller) ? nf::YamlLimits{kBytes, kNodes, &parse_turn()} : nf::YamlLimits{};
}

UserTurns::Turn::~Turn() {
  if (turns_ != nullptr) {
    const std::lock_guard lock(turns_->mutex_);
    turns_->taken_.erase(user_);
    turns_->changed_.notify_all();
  }
}

Result<UserTurns::Turn> UserTurns::take(uid_t user, std::stop_token const& gone) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, gone, [&] { return !taken_.contains(user); })) {
    return absl::CancelledError("the request was aborted");
  }
  taken_.insert(user);
  return Turn(*this, user);
}

}  // namespace catena::service
