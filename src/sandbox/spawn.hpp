// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace catena::sandbox {

/// How a program is executed in a new process.
struct SpawnOptions {
  std::vector<std::string> command;  ///< the first is a path
  int output = -1;                   ///< its stdout and stderr; its stdin is /dev/null
  std::vector<int> fds;              ///< its 3, 4, ...; it has no others
  std::optional<uid_t> uid;          ///< with `gid`, and then without supplementary groups; else the caller's
  std::optional<gid_t> gid;
};

/// Executes `options.command` in a session of its own with an empty environment and default signals. The kernel kills
/// it when the calling thread ends. Its process number; the caller has to wait for it. PermissionDenied where the
/// thread may not become the user; Unavailable with what the system says.
Result<pid_t> spawn(SpawnOptions const& options);

}  // namespace catena::sandbox
