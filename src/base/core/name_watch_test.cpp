// SPDX-License-Identifier: Apache-2.0
#include "base/core/name_watch.hpp"

#include <catena/core/testing/scratch_folder.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace catena {
namespace {

namespace fs = std::filesystem;

class NameWatchTest : public ::testing::Test {
 protected:
  OpenedFile open(mode_t mode = 0640) const {
    Result<OpenedFile> file = open_named_file(path_, O_WRONLY | O_CREAT | O_APPEND, kAnyStream, mode);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  /// What has the name is opened by the watch, and has `text` at its end then.
  void expect_written_to_the_name(FileDescriptor const& file, std::string const& text) const {
    ASSERT_TRUE(file);
    ASSERT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    std::ifstream stream(path_);
    const std::string all((std::istreambuf_iterator<char>(stream)), {});
    EXPECT_TRUE(all.ends_with(text)) << all;
  }

  ScratchFolder folder_;
  std::string path_ = folder_.path("log");
};

TEST_F(NameWatchTest, the_same_file_is_not_opened_again) {
  NameWatch name(path_, open());
  EXPECT_FALSE(name.renewed());
  check_names_of_outputs();
  EXPECT_FALSE(name.renewed());
}

TEST_F(NameWatchTest, a_file_of_the_name_is_created_with_the_rights_of_the_old_one) {
  NameWatch name(path_, open());
  fs::rename(path_, path_ + ".1");
  check_names_of_outputs();
  expect_written_to_the_name(name.renewed(), "new");
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0640));
  EXPECT_FALSE(name.renewed());
  check_names_of_outputs();
  EXPECT_FALSE(name.renewed());
}

TEST_F(NameWatchTest, another_file_that_got_the_name_is_appended_to) {
  NameWatch name(path_, open());
  fs::rename(path_, path_ + ".1");
  std::ofstream(path_) << "by logrotate\n";
  check_names_of_outputs();
  expect_written_to_the_name(name.renewed(), "by logrotate\nnew");
}

TEST_F(NameWatchTest, an_own_check_each_second_finds_it_too) {
  NameWatch name(path_, open());
  fs::remove(path_);
  FileDescriptor file;
  while (!file) {
    file = name.renewed();
  }
  expect_written_to_the_name(file, "new");
}

TEST_F(NameWatchTest, a_name_that_cannot_be_opened_leaves_the_old_file) {
  NameWatch name(path_, open());
  fs::remove(path_);
  fs::create_directory(path_);
  check_names_of_outputs();
  EXPECT_FALSE(name.renewed());
  fs::remove(path_);
  check_names_of_outputs();
  expect_written_to_the_name(name.renewed(), "new");
}

TEST_F(NameWatchTest, a_fifo_is_never_opened_again) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const FileDescriptor reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK));
  NameWatch name(path_, open());
  fs::remove(path_);
  check_names_of_outputs();
  EXPECT_FALSE(name.renewed());
  EXPECT_FALSE(fs::exists(path_));
}

}  // namespace
}  // namespace catena
