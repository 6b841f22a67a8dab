// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What bubblewrap and /proc say of processes.
namespace catena::sandbox {

struct ProcessStat {
  std::string name;  ///< at most 15 bytes
  pid_t parent = 0;
  std::uint64_t started = 0;  ///< when, in ticks of the kernel's clock: another process of the same number has another
};

/// Nothing where there is no such process.
std::optional<ProcessStat> read_process_stat(pid_t process);

/// 0 where it has none.
pid_t first_child_of(pid_t process);

/// The first process of the namespace in what bubblewrap writes to --json-status-fd; 0 where the number is not there or
/// may go on.
pid_t find_child_pid(std::string_view status);

}  // namespace catena::sandbox
