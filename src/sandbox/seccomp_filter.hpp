// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include "core/file_descriptor.hpp"

/// Which system calls a sandboxed process may make: a list of what is allowed.
///
/// What is not on it fails with EPERM instead of killing the process: libraries probe for features, and an error is as
/// safe as a kill, as the call is not made either way. Calls that are newer than the filter, and those whose arguments
/// the kernel's filters cannot see (clone3, openat2), fail with ENOSYS, so that libraries use the older call. A call of
/// another architecture (i386 or x32 on x86-64) kills the process: its numbers mean other calls.
namespace catena::sandbox {

/// The filter as a BPF program in a file in memory, at its start, as bubblewrap reads it. `can_write`: files may be
/// opened to be written; where that is possible is up to the mounts.
/// Unavailable where the kernel or libseccomp refuses.
Result<FileDescriptor> make_seccomp_filter(bool can_write);

}  // namespace catena::sandbox
