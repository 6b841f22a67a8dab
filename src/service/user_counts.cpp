// SPDX-License-Identifier: Apache-2.0
#include "service/user_counts.hpp"

#include "service/caller.hpp"

namespace catena::service {
namespace {

/// 1 for those who have a common bound.
int share_of(uid_t user) { return is_privileged({user, 0, {}}) ? 0 : 1; }

}  // namespace

bool UserCounts::add(uid_t user) {
  const std::lock_guard lock(mutex_);
  const auto found = by_user_.find(user);
  const int count = found == by_user_.end() ? 0 : found->second;
  if (count >= max_of_user_ || (share_of(user) != 0 && of_users_ >= max_of_users_)) {
    return false;
  }
  by_user_[user] = count + 1;
  of_users_ += share_of(user);
  return true;
}

void UserCounts::remove(uid_t user) {
  const std::lock_guard lock(mutex_);
  if (--by_user_[user] == 0) {
    by_user_.erase(user);
  }
  of_users_ -= share_of(user);
}

}  // namespace catena::service
