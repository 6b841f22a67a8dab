// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/own_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace catena::sandbox {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;

/// Where the texts of a process say that its group of `controller` is.
std::optional<std::filesystem::path> folder(std::string_view controller, std::string_view cgroup,
                                            std::string_view mountinfo) {
  return folder_of(controller, parse_memberships(cgroup), parse_group_mounts(mountinfo));
}

// as Debian 12 has them
constexpr std::string_view kV2Mounts =
    "22 28 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw\n"
    "28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro\n"
    "29 22 0:25 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
    "rw,nsdelegate,memory_recursiveprot\n";

// a machine with all of v1, and v2 without controllers
constexpr std::string_view kHybridMounts =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:4 master:2 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
constexpr std::string_view kHybridGroups =
    "9:name=systemd:/system.slice/catena.service\n8:pids:/system.slice/catena.service\n"
    "4:memory:/jobs/7\n1:cpu,cpuacct:/\n0::/system.slice/catena.service\n";

TEST(OwnGroups, memberships_of_v1_and_v2_are_read) {
  const auto memberships = parse_memberships(kHybridGroups);
  ASSERT_EQ(memberships.size(), 5U);
  EXPECT_THAT(memberships[0].controllers, ElementsAre("name=systemd"));
  EXPECT_THAT(memberships[3].controllers, ElementsAre("cpu", "cpuacct"));
  EXPECT_EQ(memberships[3].path, "/");
  EXPECT_THAT(memberships[4].controllers, IsEmpty());
  EXPECT_EQ(memberships[4].path, "/system.slice/catena.service");
}

TEST(OwnGroups, a_path_with_colons_blanks_and_backslashes_is_as_it_is) {
  const auto memberships = parse_memberships("0::/user:1000/a b\\040c\n");
  ASSERT_EQ(memberships.size(), 1U);
  EXPECT_EQ(memberships[0].path, "/user:1000/a b\\040c");
}

TEST(OwnGroups, what_is_no_membership_is_left_out) {
  EXPECT_THAT(parse_memberships(""), IsEmpty());
  EXPECT_THAT(parse_memberships("\n:\n0::\nnonsense\n4:memory"), IsEmpty());
  EXPECT_EQ(parse_memberships("0::/without-end").size(), 1U);
}

TEST(OwnGroups, mounts_are_read_whatever_optional_fields_they_have) {
  const auto mounts = parse_group_mounts(kHybridMounts);
  ASSERT_EQ(mounts.size(), 5U);
  EXPECT_EQ(mounts[0].point, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_THAT(mounts[0].controllers, ElementsAre("rw", "cpu", "cpuacct"));
  EXPECT_THAT(mounts[4].controllers, IsEmpty());
}

TEST(OwnGroups, mounts_are_unescaped) {
  const auto mounts =
      parse_group_mounts("29 22 0:25 /a\\134b\\040c /mnt/my\\040groups\\011\\012x rw - cgroup2 none rw\n");
  ASSERT_EQ(mounts.size(), 1U);
  EXPECT_EQ(mounts[0].point, "/mnt/my groups\t\nx");
  EXPECT_EQ(mounts[0].root, "/a\\b c");
}

TEST(OwnGroups, what_is_no_mount_is_left_out) {
  EXPECT_THAT(parse_group_mounts(""), IsEmpty());
  EXPECT_THAT(parse_group_mounts("29 22 0:25 / /x rw - cgroup2\n- - - -\n29 22 - cgroup2 cgroup2 rw\n\n"), IsEmpty());
  // a backslash that begins no number, at the end of its field
  const auto mounts = parse_group_mounts("29 22 0:25 /\\04 /\\999\\ rw - cgroup2 none rw");
  ASSERT_EQ(mounts.size(), 1U);
  EXPECT_EQ(mounts[0].root, "/\\04");
  EXPECT_EQ(mounts[0].point, "/\\999\\");
}

TEST(OwnGroups, the_group_of_v2_is_found) {
  EXPECT_THAT(folder("", "0::/system.slice/catena.service\n", kV2Mounts),
              Optional(Eq("/sys/fs/cgroup/system.slice/catena.service")));
  EXPECT_THAT(folder("", "0::/\n", kV2Mounts), Optional(Eq("/sys/fs/cgroup")));
  EXPECT_EQ(folder("memory", "0::/\n", kV2Mounts), std::nullopt);
}

TEST(OwnGroups, each_controller_of_v1_has_its_group) {
  EXPECT_THAT(folder("memory", kHybridGroups, kHybridMounts), Optional(Eq("/sys/fs/cgroup/memory/jobs/7")));
  EXPECT_THAT(folder("pids", kHybridGroups, kHybridMounts),
              Optional(Eq("/sys/fs/cgroup/pids/system.slice/catena.service")));
  EXPECT_THAT(folder("cpuacct", kHybridGroups, kHybridMounts), Optional(Eq("/sys/fs/cgroup/cpu,cpuacct")));
  EXPECT_THAT(folder("", kHybridGroups, kHybridMounts),
              Optional(Eq("/sys/fs/cgroup/unified/system.slice/catena.service")));
  EXPECT_EQ(folder("hugetlb", kHybridGroups, kHybridMounts), std::nullopt);
}

TEST(OwnGroups, a_hierarchy_that_is_not_mounted_has_no_folder) {
  EXPECT_EQ(folder("memory", kHybridGroups, kV2Mounts), std::nullopt);
  EXPECT_EQ(folder("", "0::/a\n", "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"), std::nullopt);
}

/// A container has a part of the hierarchy, at whose mount the rest of the path begins.
TEST(OwnGroups, a_part_of_the_hierarchy_that_is_mounted_is_enough) {
  constexpr std::string_view kMount = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
  EXPECT_THAT(folder("memory", "4:memory:/docker/abc\n", kMount), Optional(Eq("/sys/fs/cgroup/memory")));
  EXPECT_THAT(folder("memory", "4:memory:/docker/abc/init\n", kMount), Optional(Eq("/sys/fs/cgroup/memory/init")));
  EXPECT_EQ(folder("memory", "4:memory:/docker/abcd\n", kMount), std::nullopt);
  EXPECT_EQ(folder("memory", "4:memory:/docker\n", kMount), std::nullopt);
  EXPECT_EQ(folder("memory", "4:memory:/\n", kMount), std::nullopt);
}

/// A process outside its namespace's root has a path that leads out.
TEST(OwnGroups, a_group_outside_of_what_is_mounted_has_no_folder) {
  EXPECT_EQ(folder("memory", "4:memory:/../other\n", "35 31 0:32 /inner /x rw - cgroup cgroup rw,memory\n"),
            std::nullopt);
}

/// systemd mounts the service's own part again, to be written, over a tree that is read-only.
TEST(OwnGroups, the_mount_of_the_smallest_part_is_taken_and_of_equal_ones_the_last) {
  const std::string part =
      "50 29 0:25 /system.slice/catena.service /sys/fs/cgroup/system.slice/catena.service rw - cgroup2 cgroup2 rw\n";
  const std::string elsewhere = "51 28 0:25 / /mnt/cgroup rw - cgroup2 cgroup2 rw\n";
  for (std::string const& mounts :
       {std::string(kV2Mounts) + part + elsewhere, elsewhere + part + std::string(kV2Mounts)}) {
    EXPECT_THAT(folder("", "0::/system.slice/catena.service/x\n", mounts),
                Optional(Eq("/sys/fs/cgroup/system.slice/catena.service/x")));
  }
  EXPECT_THAT(folder("", "0::/user.slice\n", std::string(kV2Mounts) + part + elsewhere),
              Optional(Eq("/mnt/cgroup/user.slice")));
}

}  // namespace
}  // namespace catena::sandbox
