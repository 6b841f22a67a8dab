// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"

#include <catena/core/status.hpp>

#include <utility>

namespace catena::ipc {

/// Both ends of a new connection (Unix domain, stream). Neither process can make the other block, since the flags of a
/// descriptor belong to its end alone. ResourceExhausted if no socket is available. Any thread.
Result<std::pair<FileDescriptor, FileDescriptor>> make_socket_pair();

}  // namespace catena::ipc
