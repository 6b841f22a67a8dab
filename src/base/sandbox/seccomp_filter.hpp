// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <vector>

#include "base/core/file_descriptor.hpp"
#include "base/sandbox/sandbox.hpp"

/// The system calls allowed in a sandboxed process: an allowlist.
///
/// Other calls fail with EPERM instead of killing the process: libraries probe for features, and the call is not
/// executed in either case. Calls newer than the filter, and calls with arguments invisible to the kernel's filters
/// (clone3, openat2), fail with ENOSYS, so libraries use the older call. A call of another architecture (i386 or x32 on
/// x86-64) kills the process, as its numbers mean other calls.
namespace catena::sandbox {

/// The calls that some sandboxes allow and others do not.
struct FilteredCalls {
  bool can_write = false;                    ///< files may be opened for writing, as far as the mounts allow it
  bool starts_programs = false;              ///< processes may be started, without namespaces of their own
  bool listens = false;                      ///< as SandboxOptions::listens
  std::vector<IoctlRequests> requests = {};  ///< as SandboxOptions::requests

  static FilteredCalls of(SandboxOptions const& options);
};

/// The filter as a BPF program in a memory file, at its start, as read by bubblewrap. Unavailable if the kernel or
/// libseccomp refuses.
Result<FileDescriptor> make_seccomp_filter(FilteredCalls const& calls);

}  // namespace catena::sandbox
