// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>

namespace catena::service {

/// Counts what users have at a time, with a bound for each, which is below that for all who are not privileged: so one
/// keeps no other out. Any thread.
class UserCounts {
 public:
  UserCounts(int max_of_user, int max_of_users) : max_of_user_(max_of_user), max_of_users_(max_of_users) {}

  /// False, and nothing is counted, where `user` may have no more.
  bool add(uid_t user);
  /// One that was added.
  void remove(uid_t user);

 private:
  int max_of_user_;
  int max_of_users_;
  std::mutex mutex_;
  std::map<uid_t, int> by_user_;
  int of_users_ = 0;  ///< of all who are not privileged
};

}  // namespace catena::service
