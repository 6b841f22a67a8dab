// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>

namespace catena::service {

/// Counts concurrent items by user, with a limit per user below the limit for all unprivileged users together: so one
/// user does not block the others. Any thread.
class UserCounts {
 public:
  UserCounts(int max_of_user, int max_of_users) : max_of_user_(max_of_user), max_of_users_(max_of_users) {}

  /// False, without counting, if `user` may have no more.
  bool add(uid_t user);
  /// An item added before.
  void remove(uid_t user);

 private:
  int max_of_user_;
  int max_of_users_;
  std::mutex mutex_;
  std::map<uid_t, int> by_user_;
  int of_users_ = 0;  ///< of all unprivileged users
};

}  // namespace catena::service
