// SPDX-License-Identifier: Apache-2.0
#include "service/key_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <catena/core/text.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace catena::service {
namespace {

using std::filesystem::perms;

class KeyFiles : public ::testing::Test {
 protected:
  KeyFiles() { std::ofstream(path_) << "keys"; }
  ~KeyFiles() override { std::filesystem::remove(path_); }

  std::vector<std::string> warnings(perms mode, std::string const& who = "'sa'") const {
    std::filesystem::permissions(path_, mode);
    const chain::NamedFile file{who, "a.yaml:7:3", path_};
    return key_file_warnings({&file, 1});
  }

  const std::string path_ = std::filesystem::temp_directory_path() / concat("key-files-", ::getpid());
};

constexpr perms kOwners = perms::owner_read | perms::owner_write;

TEST_F(KeyFiles, one_that_others_can_read_has_a_warning_with_its_position_and_the_remedy) {
  EXPECT_THAT(warnings(kOwners | perms::others_read),
              ::testing::ElementsAre(concat("a.yaml:7:3: ", path_,
                                            " has keys and is readable by users other than its "
                                            "owner; use `chmod 600 ",
                                            path_, "`")));
  EXPECT_EQ(warnings(kOwners | perms::group_read).size(), 1U);
}

TEST_F(KeyFiles, one_of_its_owner_alone_has_none) { EXPECT_TRUE(warnings(kOwners).empty()); }

TEST_F(KeyFiles, a_file_without_keys_may_be_read) {
  EXPECT_TRUE(warnings(kOwners | perms::others_read, "'rules'").empty());
}

TEST_F(KeyFiles, a_missing_one_is_left_to_the_check) {
  std::filesystem::remove(path_);
  const chain::NamedFile file{"'sa'", "a.yaml:7:3", path_};
  EXPECT_TRUE(key_file_warnings({&file, 1}).empty());
}

}  // namespace
}  // namespace catena::service
