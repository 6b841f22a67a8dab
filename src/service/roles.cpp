// SPDX-License-Identifier: Apache-2.0
#include "service/roles.hpp"

#include "service/user_keys.hpp"

#include <catena/nf/config.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace catena::service {
namespace {

/// Those that a file may give: root is root.
std::vector<std::string> given_names() {
  std::vector<std::string> names;
  for (RoleInfo const& info : kRoles) {
    if (info.role != Role::kRoot) {
      names.emplace_back(info.name);
    }
  }
  return names;
}

Result<Role> role_at(nf::Config& config, std::string const& key, Role fallback) {
  CATENA_ASSIGN_OR_RETURN(const std::string name, config.one_of(key, given_names(), info_of(fallback).name));
  return std::ranges::find(kRoles, name, &RoleInfo::name)->role;
}

Result<std::map<std::uint32_t, Role>> rows_of(nf::Config& config, std::string_view section, std::string_view kind) {
  std::map<std::uint32_t, Role> roles;
  CATENA_ASSIGN_OR_RETURN(nf::Config rows, config.section_or_empty(section));
  for (std::string const& key : rows.keys()) {
    CATENA_ASSIGN_OR_RETURN(const std::uint32_t id, id_of_key(rows, key, kind));
    CATENA_ASSIGN_OR_RETURN(roles[id], role_at(rows, key, Role::kOwner));
  }
  CATENA_RETURN_IF_ERROR(rows.finish());
  return roles;
}

}  // namespace

RoleInfo const& info_of(Role role) { return kRoles[static_cast<std::size_t>(role)]; }

bool may_use(Role role, Role least, bool is_own) {
  RoleInfo const& info = info_of(role);
  switch (least) {
    case Role::kReader:
      return is_own || info.sees_others;
    case Role::kOwner:
      return is_own ? info.changes_own : role == Role::kRoot;
    case Role::kOperator:
      return is_own ? info.changes_own : info.operates_others;
    case Role::kRoot:
      break;
  }
  return role == Role::kRoot;
}

Result<Roles> Roles::load(std::string const& file) {
  CATENA_ASSIGN_OR_RETURN(nf::Config config, nf::Config::load(file));
  Roles roles;
  CATENA_ASSIGN_OR_RETURN(roles.standard_, role_at(config, "default", roles.standard_));
  CATENA_ASSIGN_OR_RETURN(roles.users_, rows_of(config, "users", "user"));
  CATENA_ASSIGN_OR_RETURN(roles.groups_, rows_of(config, "groups", "group"));
  CATENA_RETURN_IF_ERROR(config.finish());
  return roles;
}

Role Roles::of(Caller const& caller) const {
  if (is_privileged(caller)) {
    return Role::kRoot;
  }
  if (const auto found = users_.find(caller.uid); found != users_.end()) {
    return found->second;
  }
  std::optional<Role> greatest;
  const auto add = [&](gid_t group) {
    if (const auto found = groups_.find(group); found != groups_.end()) {
      greatest = greatest ? std::max(*greatest, found->second) : found->second;
    }
  };
  add(caller.gid);
  std::ranges::for_each(caller.groups, add);
  return greatest.value_or(standard_);
}

Status RolesFile::read() {
  if (file_.empty()) {
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(Roles roles, Roles::load(file_));
  const std::lock_guard lock(mutex_);
  roles_ = std::move(roles);
  return absl::OkStatus();
}

Role RolesFile::of(Caller const& caller) const {
  const std::lock_guard lock(mutex_);
  return roles_.of(caller);
}

}  // namespace catena::service
