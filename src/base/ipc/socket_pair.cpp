// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/socket_pair.hpp"

#include <catena/core/text.hpp>

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace catena::ipc {

Result<std::pair<FileDescriptor, FileDescriptor>> make_socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return absl::ResourceExhaustedError(concat("socketpair: ", std::strerror(errno)));
  }
  return std::pair(FileDescriptor(ends[0]), FileDescriptor(ends[1]));
}

}  // namespace catena::ipc
