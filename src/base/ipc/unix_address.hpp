// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>

namespace catena::ipc {

/// The address of the Unix domain socket at `path`. InvalidArgument, with the path and the limit: empty or too long.
/// Any thread.
Result<sockaddr_un> unix_address(std::string_view path);

/// `address` as system calls take it, with sizeof(sockaddr_un) as its length.
inline sockaddr const* raw(sockaddr_un const& address) { return reinterpret_cast<sockaddr const*>(&address); }

}  // namespace catena::ipc
