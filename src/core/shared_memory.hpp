// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file_descriptor.hpp"

#include <catena/core/status.hpp>

#include <absl/functional/function_ref.h>

#include <cstdint>

/// Memory behind a descriptor, which goes to other processes. It is its owner's alone (mode 0600): a user who finds it
/// in /proc cannot open it. `name` is what /proc shows.
namespace catena {

enum class Pages {
  kNow,         ///< all are there: none that is missing later ends a process by SIGBUS
  kWhenWritten  ///< each comes when somebody writes there
};

/// Memory, all zero, that nobody can shrink or grow. ResourceExhausted, with the call that failed and why.
Result<FileDescriptor> make_shared_memory(const char* name, std::uint64_t bytes, Pages pages);

/// A file in memory whose bytes nobody changes any more; `write` has put them there. To be read from its start. Errors:
/// those of `write`; Unavailable, with the call that failed and why.
Result<FileDescriptor> make_memory_file(const char* name, absl::FunctionRef<Status(int file)> write);

}  // namespace catena
