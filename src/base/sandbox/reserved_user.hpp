// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

namespace catena::sandbox {

/// Users for sandboxed processes of root: without such a user a process could be read or killed by every other process
/// of its user on this machine. No distribution assigns users of this range.
struct UserRange {
  std::uint32_t first = 1'900'000'000;
  std::uint32_t count = 65'536;
};

/// A user, and the group with the same number, that no other process on this machine has: other ReservedUsers have
/// other ones while it exists, in all processes that use the same file of locks. The kernel releases it when its
/// process ends.
class ReservedUser {
 public:
  /// The file of locks, for root alone.
  static constexpr const char* kLocks = "/run/catena-users";

  /// Any thread. Errors: Unavailable, with the reason, if this user namespace lacks the range, or if the file of locks
  /// cannot be made; ResourceExhausted if all users are taken.
  static Result<std::unique_ptr<ReservedUser>> take(std::filesystem::path const& locks = kLocks, UserRange range = {});
  uid_t id() const { return id_; }

 private:
  ReservedUser(FileDescriptor lock, uid_t id) : lock_(std::move(lock)), id_(id) {}

  FileDescriptor lock_;  ///< has one byte of the file locked, as long as it is open
  uid_t id_;
};

/// Whether a user namespace with this content of /proc/self/uid_map has all of the range.
bool has_range(std::string_view uid_map, UserRange range);

/// A user that other processes of this machine may have, too.
inline constexpr uid_t kNobody = 65'534;

/// A user for a sandboxed process.
struct ProcessUser {
  std::unique_ptr<ReservedUser> reserved;  ///< keep it as long as the process; null: it has another user
  uid_t id = 0;
};
/// A reserved user for a process of root. Without one, kNobody, and a warning in the log, the first time.
ProcessUser take_process_user();

}  // namespace catena::sandbox
