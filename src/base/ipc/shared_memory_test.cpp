// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/shared_memory.hpp"

#include <catena/core/text.hpp>

#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string>
#include <thread>

namespace catena::ipc {
namespace {

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

struct stat status_of(int fd) {
  struct stat status {};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return status;
}

TEST(SharedMemory, is_its_owners_and_keeps_its_size) {
  for (const Pages pages : {Pages::kNow, Pages::kWhenWritten}) {
    const FileDescriptor memory = make_shared_memory("test", 1 << 20, pages).value();
    const struct stat status = status_of(memory.get());
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
    EXPECT_EQ(status.st_size, 1 << 20);
    EXPECT_EQ(status.st_blocks != 0, pages == Pages::kNow);
    EXPECT_EQ(::fcntl(memory.get(), F_GET_SEALS), kFixedSize);
    EXPECT_EQ(::fcntl(memory.get(), F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(::ftruncate(memory.get(), 0), -1);
    EXPECT_EQ(::pwrite(memory.get(), "x", 1, 0), 1);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(
      make_shared_memory("test", std::numeric_limits<std::uint64_t>::max(), Pages::kWhenWritten).status()));
}

TEST(SharedMemory, has_nothing_for_another_user_who_finds_it) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root alone can act for others";
  }
  const FileDescriptor memory = make_shared_memory("test", 4096, Pages::kNow).value();
  const std::string name = concat("/proc/self/fd/", memory.get());
  int error = 0;
  std::thread([&] {
    constexpr uid_t kStranger = 64'001;
    ::setfsuid(kStranger);
    error = ::open(name.c_str(), O_RDONLY | O_CLOEXEC) < 0 ? errno : 0;
  }).join();
  EXPECT_EQ(error, EACCES);
}

TEST(MemoryFile, is_read_from_its_start_and_written_by_nobody) {
  const FileDescriptor file = make_memory_file("test", [](int fd) {
                                return ::write(fd, "text", 4) == 4 ? Status() : absl::DataLossError("");
                              }).value();
  EXPECT_EQ(status_of(file.get()).st_mode & 07777U, 0600U);
  EXPECT_EQ(::fcntl(file.get(), F_GET_SEALS), kFixedSize | F_SEAL_WRITE);
  char text[8] = "";
  EXPECT_EQ(::read(file.get(), text, sizeof text), 4);
  EXPECT_STREQ(text, "text");
  EXPECT_EQ(::pwrite(file.get(), "x", 1, 0), -1);
  EXPECT_TRUE(absl::IsDataLoss(make_memory_file("test", [](int) { return absl::DataLossError(""); }).status()));
}

}  // namespace
}  // namespace catena::ipc
