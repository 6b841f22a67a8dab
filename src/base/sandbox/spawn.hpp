// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace catena::sandbox {

/// Options for executing a program in a new process.
struct SpawnOptions {
  std::vector<std::string> command;  ///< the first is its path
  int output = -1;                   ///< its stdout and stderr; its stdin is /dev/null
  std::vector<int> fds;              ///< its 3, 4, ...; it gets no others
  std::optional<uid_t> uid;          ///< requires `gid`, and drops supplementary groups; unset: the caller's
  std::optional<gid_t> gid;
};

/// Executes `options.command` in its own session with an empty environment and default signals. The kernel kills it
/// when the calling thread ends. Returns its process number; the caller must wait for it. PermissionDenied if the
/// thread may not become the user; Unavailable with the system's reason.
Result<pid_t> spawn(SpawnOptions const& options);

}  // namespace catena::sandbox
