// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/reserved_user.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace catena::sandbox {
namespace {

using testing::HasSubstr;

class ReservedUserTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path locks() const { return folder_ / "users"; }
  /// Of users that every user namespace has for this process.
  UserRange range() const { return {.first = ::geteuid(), .count = 1}; }

  std::filesystem::path folder_ = testing::TempDir() + "reserved_user_" + std::to_string(::getpid());
};

TEST_F(ReservedUserTest, is_of_one_owner_until_it_ends) {
  auto one = ReservedUser::take(locks(), range());
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ((*one)->id(), ::geteuid());
  EXPECT_TRUE(absl::IsResourceExhausted(ReservedUser::take(locks(), range()).status()));
  one->reset();
  EXPECT_TRUE(ReservedUser::take(locks(), range()).ok());
}

TEST_F(ReservedUserTest, is_of_one_process_and_ends_with_it) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto user = ReservedUser::take(locks(), range());
    const bool is_exclusive = user.ok() && !ReservedUser::take(locks(), range()).ok();
    ::_exit(is_exclusive ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const auto ours = ReservedUser::take(locks(), range());
  ASSERT_TRUE(ours.ok()) << ours.status();
  const pid_t other = ::fork();
  if (other == 0) {
    ::_exit(ReservedUser::take(locks(), range()).ok() ? 1 : 0);
  }
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
}

TEST_F(ReservedUserTest, others_get_other_users) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "this user has itself alone";
  }
  const UserRange three{.first = 1, .count = 3};
  std::vector<std::unique_ptr<ReservedUser>> users;
  std::vector<uid_t> ids;
  for (std::uint32_t i = 0; i < three.count; ++i) {
    auto user = ReservedUser::take(locks(), three);
    ASSERT_TRUE(user.ok()) << user.status();
    ids.push_back((*user)->id());
    users.push_back(*std::move(user));
  }
  EXPECT_THAT(ids, testing::UnorderedElementsAre(1, 2, 3));
  EXPECT_FALSE(ReservedUser::take(locks(), three).ok());
}

TEST_F(ReservedUserTest, needs_a_file_that_no_other_user_can_lock) {
  std::filesystem::create_directories(folder_);
  std::ofstream(locks()).close();
  ASSERT_EQ(::chmod(locks().c_str(), 0644), 0);
  EXPECT_THAT(std::string(ReservedUser::take(locks(), range()).status().message()), HasSubstr("owner alone"));
  std::filesystem::remove(locks());
  std::filesystem::create_symlink("elsewhere", locks());
  EXPECT_TRUE(absl::IsUnavailable(ReservedUser::take(locks(), range()).status()));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "elsewhere"));
}

TEST(UserRange, is_in_a_user_namespace_as_a_whole) {
  constexpr UserRange kRange{.first = 1000, .count = 10};
  EXPECT_TRUE(has_range("         0          0 4294967295\n", kRange));
  EXPECT_TRUE(has_range("0 100000 1\n1000 200000 10\n", kRange));
  EXPECT_FALSE(has_range("0 100000 1009\n", kRange)) << "the last one is missing";
  EXPECT_FALSE(has_range("1001 100000 65536\n", kRange));
  EXPECT_FALSE(has_range("", kRange));
}

}  // namespace
}  // namespace catena::sandbox
