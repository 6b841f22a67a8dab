// SPDX-License-Identifier: Apache-2.0
#include "gpu/program/program_cache.hpp"

#include "gpu/program/testing/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <fstream>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace catena::program {
namespace {

namespace fs = std::filesystem;
using testing::Environment;

device::Hash128 key(std::string_view text) { return device::Hash128().add(text); }

device::Binary program(std::size_t bytes, std::uint8_t seed) {
  device::Binary binary(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    binary[i] = static_cast<std::byte>(i * 7 + seed);
  }
  return binary;
}

class ProgramCacheTest : public ::testing::Test {
 protected:
  ProgramCacheTest() {
    spdlog::set_level(spdlog::level::err);  // each damaged file is worth a warning to a user, thousands are not here
    std::string pattern = (fs::path(::testing::TempDir()) / "catena-cache-XXXXXX").string();
    parent_ = ::mkdtemp(pattern.data());
  }
  ~ProgramCacheTest() override {
    fs::remove_all(parent_);
    spdlog::set_level(spdlog::level::info);
  }

  fs::path folder() const { return parent_ / "programs"; }
  ProgramCache cache() const { return ProgramCache(folder()); }
  fs::path only_file() const {
    EXPECT_EQ(files().size(), 1U);
    return files().front();
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (auto const& entry : fs::directory_iterator(folder())) {
      found.push_back(entry.path());
    }
    return found;
  }

 private:
  fs::path parent_;
};

TEST_F(ProgramCacheTest, gives_back_what_was_stored_under_the_key) {
  EXPECT_EQ(cache().find(key("a")), std::nullopt);
  cache().store(key("a"), program(1000, 1));
  cache().store(key("b"), program(0, 2));
  EXPECT_EQ(cache().find(key("a")), program(1000, 1));
  EXPECT_EQ(cache().find(key("b")), program(0, 2));
  EXPECT_EQ(cache().find(key("c")), std::nullopt);
  cache().store(key("a"), program(10, 3));
  EXPECT_EQ(cache().find(key("a")), program(10, 3));
}

TEST_F(ProgramCacheTest, folder_and_files_are_for_this_user_alone) {
  cache().store(key("a"), program(10, 1));
  struct stat status {};
  ASSERT_EQ(::stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  ASSERT_EQ(::stat(only_file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(ProgramCacheTest, a_file_that_was_cut_or_changed_is_not_taken) {
  cache().store(key("a"), program(100, 1));
  const fs::path path = only_file();
  std::string whole(fs::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(whole.data(), static_cast<std::streamsize>(whole.size()));
  const auto write = [&path](std::string const& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  };
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write(whole.substr(0, length));
    EXPECT_EQ(cache().find(key("a")), std::nullopt) << length;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    write(changed);
    EXPECT_EQ(cache().find(key("a")), std::nullopt) << at;
  }
  write(whole);
  EXPECT_EQ(cache().find(key("a")), program(100, 1));
}

TEST_F(ProgramCacheTest, a_file_under_the_wrong_name_is_not_taken) {
  cache().store(key("a"), program(100, 1));
  const fs::path a = only_file();
  cache().store(key("b"), program(100, 2));
  for (fs::path const& file : files()) {
    if (file != a) {
      fs::copy_file(a, file, fs::copy_options::overwrite_existing);
    }
  }
  EXPECT_EQ(cache().find(key("b")), std::nullopt);
}

TEST_F(ProgramCacheTest, links_and_files_of_other_users_are_not_taken) {
  cache().store(key("a"), program(100, 1));
  const fs::path path = only_file();
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
    EXPECT_EQ(cache().find(key("a")), std::nullopt);
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
    EXPECT_EQ(cache().find(key("a")), program(100, 1));
  }
  fs::rename(path, folder() / "elsewhere");
  fs::create_symlink(folder() / "elsewhere", path);
  EXPECT_EQ(cache().find(key("a")), std::nullopt);
}

TEST_F(ProgramCacheTest, a_folder_in_place_of_the_file_is_not_taken) {
  cache().store(key("a"), program(100, 1));
  const fs::path path = only_file();
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_EQ(cache().find(key("a")), std::nullopt);
  cache().store(key("a"), program(100, 1));
  EXPECT_EQ(files().size(), 1U) << "the temporary file must not stay";
}

TEST_F(ProgramCacheTest, does_not_grow_without_bound) {
  for (std::size_t i = 0; i < ProgramCache::kMaxPrograms + 20; ++i) {
    cache().store(key(std::to_string(i)), program(8, static_cast<std::uint8_t>(i)));
  }
  EXPECT_EQ(files().size(), ProgramCache::kMaxPrograms);
  const std::size_t newest = ProgramCache::kMaxPrograms + 19;
  EXPECT_EQ(cache().find(key(std::to_string(newest))), program(8, static_cast<std::uint8_t>(newest)));
}

TEST_F(ProgramCacheTest, large_programs_leave_room_for_fewer) {
  constexpr std::size_t kBytes = ProgramCache::kMaxBytes / 8;
  device::Binary large(kBytes);
  for (std::uint8_t i = 0; i < 10; ++i) {
    large.front() = std::byte{i};
    cache().store(key(std::to_string(i)), large);
  }
  EXPECT_EQ(files().size(), 7U) << "each has a header, too";
  EXPECT_EQ(cache().find(key("9")), large);
  EXPECT_EQ(cache().find(key("0")), std::nullopt);
}

TEST_F(ProgramCacheTest, another_one_below_has_its_own_bound) {
  const ProgramCache below = cache().below("strangers");
  cache().store(key("a"), program(100, 1));
  below.store(key("a"), program(100, 2));
  EXPECT_EQ(cache().find(key("a")), program(100, 1));
  EXPECT_EQ(below.find(key("a")), program(100, 2));
  EXPECT_EQ(below.folder(), folder() / "strangers");
  EXPECT_TRUE(ProgramCache({}).below("strangers").folder().empty());
}

TEST_F(ProgramCacheTest, processes_that_write_the_same_program_never_show_half_of_it) {
  constexpr int kWriters = 4;
  constexpr int kRounds = 200;
  const device::Binary whole = program(100000, 1);
  cache().store(key("a"), whole);
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int round = 0; round < kRounds; ++round) {
        cache().store(key("a"), whole);
      }
      ::_exit(0);
    }
    writers.push_back(child);
  }
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(cache().find(key("a")), whole);
  }
  for (const pid_t writer : writers) {
    int status = 0;
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(ProgramCacheTest, the_environment_says_where) {
  const fs::path own = folder().parent_path();
  const auto stored_in = [](fs::path const& where) {
    ProgramCache::from_environment().store(key("a"), program(10, 1));
    const bool there = fs::exists(where) && !fs::is_empty(where);
    fs::remove_all(where);
    return there;
  };
  const Environment home("HOME", (own / "home").c_str());
  const Environment no_own("CATENA_CACHE_DIR", nullptr);
  {
    const Environment no_xdg("XDG_CACHE_HOME", nullptr);
    EXPECT_TRUE(stored_in(own / "home/.cache/catena"));
    const Environment no_home("HOME", nullptr);
    ProgramCache::from_environment().store(key("a"), program(10, 1));
    EXPECT_EQ(ProgramCache::from_environment().find(key("a")), std::nullopt);
  }
  const Environment xdg("XDG_CACHE_HOME", (own / "xdg").c_str());
  EXPECT_TRUE(stored_in(own / "xdg/catena"));
  const Environment catena("CATENA_CACHE_DIR", (own / "own").c_str());
  EXPECT_TRUE(stored_in(own / "own"));
}

TEST(Hash128, agrees_with_the_published_vectors) {
  // FNV-1a 128: offset basis for the empty text; "a" and "foobar" from RFC 9923
  EXPECT_EQ(device::Hash128().hex(), "6c62272e07bb014262b821756295c58d");
  EXPECT_EQ(device::Hash128().add("a").hex(), "d228cb696f1a8caf78912b704e4a8964");
  EXPECT_EQ(device::Hash128().add("foobar").hex(), "343e1662793c64bf6f0d3597ba446f18");
}

TEST(Hash128, fields_cannot_be_cut_differently) {
  EXPECT_NE(device::Hash128().add_field("ab").add_field("c").hex(),
            device::Hash128().add_field("a").add_field("bc").hex());
}

}  // namespace
}  // namespace catena::program
