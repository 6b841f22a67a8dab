// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-device-server/server_program_cache.hpp"

#include "gpu/check/kernel_testing.hpp"
#include "gpu/device/remote/supervisor.hpp"
#include "gpu/device/testing/remote_device.hpp"
#include "gpu/program/program.hpp"
#include "gpu/program/testing/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include <sys/stat.h>

namespace catena::device_server {
namespace {

namespace fs = std::filesystem;
using device::remote::Trust;

device::ProgramSource source_of(std::string_view body) {
  const std::string text = static_check::testing::kernel_with({.body = body});
  device::ProgramSource source =
      program::with_sdk(std::array<kernel::EmbeddedFile, 1>{{{"base.kernel.cpp", text.c_str()}}});
  source.defines = static_check::testing::defines();
  return source;
}

/// A server of its own for each connection, with a cache that is empty at first.
class ServerProgramCacheTest : public ::testing::Test {
 protected:
  ServerProgramCacheTest() {
    std::string pattern = (fs::path(::testing::TempDir()) / "catena-kept-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    variable_.emplace("CATENA_CACHE_DIR", folder_.c_str());
  }
  ~ServerProgramCacheTest() override { fs::remove_all(folder_); }

  void SetUp() override {
    if (const auto device = start(Trust::kOwn); !device.ok()) {
      GTEST_SKIP() << device.status().message();
    }
  }
  Result<std::unique_ptr<device::Device>> start(Trust trust) {
    supervisor_ = device::remote::Supervisor::start(device::testing::server_options()).value();
    CATENA_ASSIGN_OR_RETURN(FileDescriptor socket, supervisor_->connect({"client"}, trust));
    return device::remote::connect(std::move(socket));
  }
  std::vector<ino_t> files() const {
    std::vector<ino_t> numbers;
    for (auto const& entry : fs::directory_iterator(folder_ / "strangers")) {
      struct stat status {};
      EXPECT_EQ(::stat(entry.path().c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 0077U, 0U) << "others can read " << entry.path();
      numbers.push_back(status.st_ino);
    }
    return numbers;
  }
  /// Changes a byte of whatever is there.
  void spoil() const {
    for (auto const& entry : fs::directory_iterator(folder_ / "strangers")) {
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-1, std::ios::end);
      file.put('?');
    }
  }

 private:
  fs::path folder_;
  std::optional<program::testing::Environment> variable_;
  std::unique_ptr<device::remote::Supervisor> supervisor_;
};

TEST_F(ServerProgramCacheTest, of_strangers_serve_the_next_server) {
  const Result<device::Binary> first = start(Trust::kStranger).value()->compile(source_of("table.set(0U, 2U);"));
  ASSERT_TRUE(first.ok()) << first.status();
  const std::vector<ino_t> kept = files();
  ASSERT_EQ(kept.size(), 1U);

  const auto stranger = start(Trust::kStranger).value();
  const Result<device::Binary> second = stranger->compile(source_of("table.set(0U, 2U);"));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*second, *first);
  EXPECT_TRUE(stranger->load(*second).ok());
  EXPECT_EQ(files(), kept) << "what is compiled is written anew";
}

TEST_F(ServerProgramCacheTest, are_those_of_one_source_alone) {
  ASSERT_TRUE(start(Trust::kStranger).value()->compile(source_of("table.set(0U, 2U);")).ok());
  const Result<device::Binary> other = start(Trust::kStranger).value()->compile(source_of("table.set(0U, 3U);"));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(ServerProgramCacheTest, are_judged_each_time) {
  // whoever trusts himself may keep what he likes
  const device::ProgramSource reaching = source_of("u32* const everywhere = nullptr;");
  {
    const auto own = start(Trust::kOwn).value();
    ServerProgramCache programs(*own, program::ProgramCache::from_environment().below("strangers"));
    programs.keep(reaching, own->compile(reaching).value());
    ASSERT_TRUE(programs.find(reaching).has_value());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(start(Trust::kStranger).value()->compile(reaching).status()));
}

TEST_F(ServerProgramCacheTest, that_are_damaged_are_compiled_anew) {
  ASSERT_TRUE(start(Trust::kStranger).value()->compile(source_of("table.set(0U, 2U);")).ok());
  const std::vector<ino_t> kept = files();
  spoil();
  const auto stranger = start(Trust::kStranger).value();
  const Result<device::Binary> again = stranger->compile(source_of("table.set(0U, 2U);"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(stranger->load(*again).ok());
  EXPECT_NE(files(), kept);
}

TEST_F(ServerProgramCacheTest, that_do_not_load_are_none) {
  const auto own = start(Trust::kOwn).value();
  const device::ProgramSource source = source_of("table.set(0U, 2U);");
  ServerProgramCache programs(*own, program::ProgramCache::from_environment());
  programs.keep(source, device::Binary(100, std::byte{'x'}));
  EXPECT_EQ(programs.find(source), std::nullopt);
}

}  // namespace
}  // namespace catena::device_server
