// SPDX-License-Identifier: Apache-2.0
#include "service/roles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <catena/core/text.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace catena::service {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kMember = 3001;
constexpr gid_t kGroup = 4001;
constexpr gid_t kOtherGroup = 4002;

Result<Roles> roles_of(std::string const& text) {
  const std::string file = std::filesystem::temp_directory_path() / concat("roles-", ::getpid(), ".yaml");
  std::ofstream(file) << text;
  Result<Roles> roles = Roles::load(file);
  std::filesystem::remove(file);
  return roles;
}

Caller caller(std::vector<gid_t> groups = {}) { return {kMember, kMember, std::move(groups)}; }

TEST(Roles, a_user_is_an_owner_without_a_file) {
  EXPECT_EQ(Roles().of(caller()), Role::kOwner);
  EXPECT_EQ(Roles().of({0, 0, {}}), Role::kRoot);
}

TEST(Roles, the_user_counts_before_his_groups_and_these_before_the_default) {
  const Result<Roles> by_user = roles_of("default: owner\nusers: {3001: reader}\ngroups: {4001: operator}\n");
  ASSERT_TRUE(by_user.ok()) << by_user.status().message();
  EXPECT_EQ(by_user->of(caller({kGroup})), Role::kReader);
  const Result<Roles> by_group = roles_of("default: owner\ngroups: {4001: reader, 4002: operator}\n");
  ASSERT_TRUE(by_group.ok()) << by_group.status().message();
  EXPECT_EQ(by_group->of(caller({kGroup})), Role::kReader);
  EXPECT_EQ(by_group->of({kMember, kGroup, {}}), Role::kReader) << "the first group, too";
  EXPECT_EQ(by_group->of(caller({kOtherGroup, kGroup})), Role::kOperator);
  EXPECT_EQ(by_group->of(caller()), Role::kOwner);
  EXPECT_EQ(roles_of("default: reader\n")->of(caller()), Role::kReader);
  EXPECT_EQ(roles_of("users: {0: reader}\n")->of({0, 0, {}}), Role::kRoot);
}

TEST(Roles, a_wrong_file_is_an_error_at_its_place_with_the_allowed_values) {
  const auto message = [](std::string const& text) { return std::string(roles_of(text).status().message()); };
  EXPECT_THAT(message("users: {3001: operatr}\n"), HasSubstr(".yaml:1:15: "));
  EXPECT_THAT(message("users: {3001: operatr}\n"), HasSubstr("operator"));
  EXPECT_THAT(message("default: root\n"), HasSubstr(".yaml:1:10: "));
  EXPECT_THAT(message("groups:\n  staff: reader\n"), HasSubstr(".yaml:2:"));
  EXPECT_THAT(message("groups:\n  staff: reader\n"),
              HasSubstr("'staff' is no group ID; allowed: the number of a group"));
  EXPECT_THAT(message("user: {}\n"), HasSubstr(".yaml:1:1: "));
}

TEST(Roles, a_role_may_what_its_row_says) {
  for (RoleInfo const& info : kRoles) {
    const bool is_root = info.role == Role::kRoot;
    EXPECT_EQ(&info_of(info.role), &info) << info.name;
    EXPECT_TRUE(may_use(info.role, Role::kReader, true)) << info.name;
    EXPECT_EQ(may_use(info.role, Role::kReader, false), info.sees_others) << info.name;
    EXPECT_EQ(may_use(info.role, Role::kOwner, true), info.changes_own) << info.name;
    EXPECT_EQ(may_use(info.role, Role::kOwner, false), is_root) << info.name;
    EXPECT_EQ(may_use(info.role, Role::kOperator, true), info.changes_own) << info.name;
    EXPECT_EQ(may_use(info.role, Role::kOperator, false), info.operates_others) << info.name;
    EXPECT_EQ(may_use(info.role, Role::kRoot, true), is_root) << info.name;
    EXPECT_EQ(may_use(info.role, Role::kRoot, false), is_root) << info.name;
  }
}

}  // namespace
}  // namespace catena::service
