// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/unix_address.hpp"

#include "base/core/file_descriptor.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace catena::ipc {
namespace {

/// The kernel's limit: a longer path has no terminating zero.
constexpr std::size_t kMaxPath = 107;

TEST(UnixAddress, the_kernel_binds_the_longest_path) {
  std::string path = "unix_address_test." + std::to_string(::getpid()) + ".";
  path.resize(kMaxPath, 'x');
  const Result<sockaddr_un> address = unix_address(path);
  ASSERT_TRUE(address.ok()) << address.status();
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(socket.get(), raw(*address), sizeof *address), 0);
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  ::unlink(path.c_str());
}

TEST(UnixAddress, paths_that_do_not_fit_are_refused_with_the_limit) {
  for (std::string const& path : {std::string(), std::string(kMaxPath + 1, 'x')}) {
    const Status status = unix_address(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "socket '" + path + "': write a path of 1 to 107 bytes");
  }
}

}  // namespace
}  // namespace catena::ipc
