// SPDX-License-Identifier: Apache-2.0
#include "service/user_counts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace catena::service {
namespace {

constexpr uid_t kFirst = 3001;
constexpr uid_t kSecond = 3002;
constexpr uid_t kThird = 3003;

TEST(UserCounts, one_user_leaves_room_for_others) {
  UserCounts counts(2, 3);
  EXPECT_TRUE(counts.add(kFirst));
  EXPECT_TRUE(counts.add(kFirst));
  EXPECT_FALSE(counts.add(kFirst));
  EXPECT_TRUE(counts.add(kSecond));
  EXPECT_FALSE(counts.add(kThird)) << "all of them have three";
  counts.remove(kFirst);
  EXPECT_TRUE(counts.add(kThird)) << "what was refused does not count";
}

TEST(UserCounts, the_common_bound_is_not_for_the_privileged) {
  UserCounts counts(2, 1);
  EXPECT_TRUE(counts.add(kFirst));
  EXPECT_FALSE(counts.add(kSecond));
  EXPECT_TRUE(counts.add(::geteuid()));
  EXPECT_TRUE(counts.add(::geteuid()));
  EXPECT_FALSE(counts.add(::geteuid())) << "its own bound is";
  counts.remove(::geteuid());
  EXPECT_FALSE(counts.add(kSecond)) << "nor do they count for it";
  counts.remove(kFirst);
  EXPECT_TRUE(counts.add(kSecond));
}

}  // namespace
}  // namespace catena::service
