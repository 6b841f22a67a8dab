// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/caller.hpp"

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

/// Roles of the users of a control socket. A user always has the rights of a role over his own chains only, except as
/// in the table. Roles change no rights over files: these are always of the chain's user.
namespace catena::service {

/// From the least one. A route names the least role for a chain of another user (may_use()).
enum class Role { kReader, kOwner, kOperator, kRoot };

/// A row of the table of roles.
struct RoleInfo {
  Role role;
  std::string_view name;  ///< in the file and the audit
  bool changes_own;       ///< applies and changes his own chains
  bool sees_others;       ///< states, counts and revisions of the chains of other users
  bool operates_others;   ///< starts, stops, restarts and cancels the chains of other users
};

inline constexpr std::array kRoles{
    RoleInfo{
        .role = Role::kReader, .name = "reader", .changes_own = false, .sees_others = true, .operates_others = false},
    RoleInfo{
        .role = Role::kOwner, .name = "owner", .changes_own = true, .sees_others = false, .operates_others = false},
    RoleInfo{
        .role = Role::kOperator, .name = "operator", .changes_own = true, .sees_others = true, .operates_others = true},
    RoleInfo{.role = Role::kRoot, .name = "root", .changes_own = true, .sees_others = true, .operates_others = true},
};

RoleInfo const& info_of(Role role);

/// Whether a user of `role` may use a route whose least role is `least`, for a chain of his own or of another user. For
/// other users' chains kOwner needs root.
bool may_use(Role role, Role least, bool is_own);

/// The roles of all users: by user, by group, and a default one.
class Roles {
 public:
  /// All users are owners.
  Roles() = default;
  /// A YAML file `{default: owner, users: {1000: operator}, groups: {990: reader}}`. Each key may be missing. Errors:
  /// as nf::Config::load(), with file:line:column.
  static Result<Roles> load(std::string const& file);

  /// kRoot for privileged callers. Else the role of the user; without one the greatest of the groups; else the default.
  Role of(Caller const& caller) const;

 private:
  Role standard_ = Role::kOwner;
  std::map<uid_t, Role> users_;
  std::map<gid_t, Role> groups_;
};

/// The file of roles of a service. Any thread.
class RolesFile {
 public:
  /// `file`: empty: all users are owners. Call read() before the first request.
  explicit RolesFile(std::string file) : file_(std::move(file)) {}

  /// Reads the file again. Its errors, as Roles::load(), after which the earlier roles hold.
  Status read();
  Role of(Caller const& caller) const;

 private:
  std::string file_;
  mutable std::mutex mutex_;
  Roles roles_;
};

}  // namespace catena::service
