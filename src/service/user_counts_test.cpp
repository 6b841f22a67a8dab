// SPDX-License-Identifier: Apache-2.0
#include "service/user_counts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace catena::service {
namespace {

constexpr uid_t kAnn = 3001;
constexpr uid_t kBob = 3002;
constexpr uid_t kCid = 3003;

TEST(UserCounts, one_user_leaves_room_for_others) {
  UserCounts counts(2, 3);
  EXPECT_TRUE(counts.add(kAnn));
  EXPECT_TRUE(counts.add(kAnn));
  EXPECT_FALSE(counts.add(kAnn));
  EXPECT_TRUE(counts.add(kBob));
  EXPECT_FALSE(counts.add(kCid)) << "all of them have three";
  counts.remove(kAnn);
  EXPECT_TRUE(counts.add(kCid)) << "what was refused does not count";
}

TEST(UserCounts, the_common_bound_is_not_for_the_privileged) {
  UserCounts counts(2, 1);
  EXPECT_TRUE(counts.add(kAnn));
  EXPECT_FALSE(counts.add(kBob));
  EXPECT_TRUE(counts.add(::geteuid()));
  EXPECT_TRUE(counts.add(::geteuid()));
  EXPECT_FALSE(counts.add(::geteuid())) << "its own bound is";
  counts.remove(::geteuid());
  EXPECT_FALSE(counts.add(kBob)) << "nor do they count for it";
  counts.remove(kAnn);
  EXPECT_TRUE(counts.add(kBob));
}

}  // namespace
}  // namespace catena::service
