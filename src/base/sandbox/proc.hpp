// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Processes, from the output of bubblewrap and from /proc.
namespace catena::sandbox {

struct ProcessStat {
  std::string name;  ///< at most 15 bytes
  pid_t parent = 0;
  std::uint64_t started = 0;  ///< start time, in ticks of the kernel's clock; tells processes with the same number
                              ///< apart
};

/// Nullopt if the process does not exist.
std::optional<ProcessStat> read_process_stat(pid_t process);

/// 0 if it has no child.
pid_t first_child_of(pid_t process);

/// The first process of the namespace, from bubblewrap's output to --json-status-fd; 0 if the number is missing or may
/// be incomplete.
pid_t find_child_pid(std::string_view status);

}  // namespace catena::sandbox
