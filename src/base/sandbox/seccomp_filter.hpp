// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include "base/core/file_descriptor.hpp"

/// The system calls allowed in a sandboxed process: an allowlist.
///
/// Other calls fail with EPERM instead of killing the process: libraries probe for features, and the call is not
/// executed in either case. Calls newer than the filter, and calls with arguments invisible to the kernel's filters
/// (clone3, openat2), fail with ENOSYS, so libraries use the older call. A call of another architecture (i386 or x32 on
/// x86-64) kills the process, as its numbers mean other calls.
namespace catena::sandbox {

/// The filter as a BPF program in a memory file, at its start, as read by bubblewrap. `can_write`: files may be opened
/// for writing, as far as the mounts allow it. Unavailable if the kernel or libseccomp refuses.
Result<FileDescriptor> make_seccomp_filter(bool can_write);

}  // namespace catena::sandbox
