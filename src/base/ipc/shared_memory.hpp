// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"

#include <catena/core/status.hpp>

#include <absl/functional/function_ref.h>

#include <cstdint>

/// Memory with a descriptor, to be passed to other processes. Only its owner may open it (mode 0600), so no other user
/// can through /proc. `name` is its name in /proc.
namespace catena::ipc {

enum class Pages {
  kNow,         ///< all allocated now: no missing page ends a process by SIGBUS later
  kWhenWritten  ///< each is allocated by the first write
};

/// Zeroed memory, sealed against shrinking and growing. ResourceExhausted, with the failed call and the reason.
Result<FileDescriptor> make_shared_memory(const char* name, std::uint64_t bytes, Pages pages);

/// The same for memory that another process maps, allocated by the first writes; the error also gives the size.
Result<FileDescriptor> make_peer_memory(const char* name, std::uint64_t bytes);

/// A read-only file in memory with the bytes written by `write`, positioned at its start. Errors: from `write`;
/// Unavailable, with the failed call and the reason.
Result<FileDescriptor> make_memory_file(const char* name, absl::FunctionRef<Status(int file)> write);

}  // namespace catena::ipc
