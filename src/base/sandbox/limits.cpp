// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/limits.hpp"

#include <catena/core/text.hpp>

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace catena::sandbox {
namespace {

constexpr rlim_t kMaxFiles = 256;
constexpr rlim_t kMaxStack = rlim_t{8} << 20U;
/// What the kernel needs for a process, at most: pipes, sockets and what waits in them, stacks of threads ...
constexpr std::uint64_t kKernelBytes = std::uint64_t{128} << 20U;
/// ... and tables of pages: 8 bytes for 4,096, and more where memory is scattered.
constexpr std::uint64_t kBytesPerTableByte = 64;
/// The kernel's word for "no core file, nor a program that takes it": 0 forbids only the file.
constexpr rlim_t kNoCore = 1;

/// Bytes of the files and memory that the process is given and may map.
std::uint64_t shared_bytes(std::vector<int> const& fds) {
  std::uint64_t bytes = 0;
  for (const int fd : fds) {
    struct stat status {};
    if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
      bytes += static_cast<std::uint64_t>(status.st_size);
    }
  }
  return bytes;
}

/// The files that bubblewrap copies. It may be still at that when the limits are set; the program itself has no file
/// that it could write.
struct Copies {
  std::uint64_t largest = 0;  ///< bytes
  std::uint64_t all = 0;
};

Copies copies_of(std::vector<ReadOnlyBind> const& readable) {
  Copies copies;
  for (ReadOnlyBind const& bind : readable) {
    struct stat status {};
    if (bind.fd >= 0 && ::fstat(bind.fd, &status) == 0) {
      const auto bytes = static_cast<std::uint64_t>(status.st_size);
      copies.largest = std::max(copies.largest, bytes);
      copies.all += bytes;
    }
  }
  return copies;
}

struct Limit {
  const char* name;
  __rlimit_resource resource;
  rlim_t value;
};

std::vector<Limit> limits_of(SandboxOptions const& options) {
  const rlim_t addresses =
      options.limits_addresses ? options.memory_bytes + shared_bytes(options.fds) + kReservedBytes : RLIM_INFINITY;
  return {
      // What counts: private memory that can be written. Addresses are limited too, for memory that it does not count.
      {"memory", RLIMIT_DATA, options.memory_bytes},
      {"address space", RLIMIT_AS, addresses},
      {"stack", RLIMIT_STACK, std::min<rlim_t>(kMaxStack, options.memory_bytes)},
      {"locked memory", RLIMIT_MEMLOCK, 0},
      {"threads", RLIMIT_NPROC, rlim_t{options.max_threads} + 1},  // and bubblewrap's, in its user namespace
      {"size of files", RLIMIT_FSIZE, std::max(options.scratch_bytes, copies_of(options.readable).largest)},
      {"number of descriptors", RLIMIT_NOFILE, std::max<rlim_t>(kMaxFiles, 2 * options.fds.size())},
      {"size of core files", RLIMIT_CORE, kNoCore},
      {"message queues", RLIMIT_MSGQUEUE, 0},
      {"real-time priority", RLIMIT_RTPRIO, 0},
  };
}

cpu_set_t cpus_of(SandboxOptions const& options) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : options.cpus) {
    CPU_SET(static_cast<unsigned>(cpu), &set);
  }
  return set;
}

/// What the helper does: the process's user may limit it; root may not everywhere (CAP_SYS_RESOURCE). Like all that a
/// copy of a process with threads does, without allocating.
struct Helper {
  pid_t process;
  SandboxOptions const& options;
  std::span<const Limit> limits;
  cpu_set_t const& cpus;

  bool become_user() const {
    return ::syscall(SYS_setgroups, 0, nullptr) == 0 &&
           ::syscall(SYS_setresgid, *options.gid, *options.gid, *options.gid) == 0 &&
           ::syscall(SYS_setresuid, *options.uid, *options.uid, *options.uid) == 0;
  }

  /// 0, or which of the steps failed, from 1 on: those of `limits`, then nice value, CPUs, user.
  int run() const {
    const int after_limits = static_cast<int>(limits.size());
    if (::geteuid() == 0 && !become_user()) {
      return after_limits + 3;
    }
    for (std::size_t i = 0; i < limits.size(); ++i) {
      // whoever started this process may have limited it more, which the process's user cannot undo
      rlimit inherited{};
      if (::prlimit(process, limits[i].resource, nullptr, &inherited) != 0) {
        return static_cast<int>(i) + 1;
      }
      const rlim_t value = std::min(limits[i].value, inherited.rlim_max);
      const rlimit both{value, value};
      if (::prlimit(process, limits[i].resource, &both, nullptr) != 0) {
        return static_cast<int>(i) + 1;
      }
    }
    if (options.nice != 0 && ::setpriority(PRIO_PROCESS, static_cast<id_t>(process), options.nice) != 0) {
      return after_limits + 1;
    }
    if (!options.cpus.empty() && ::sched_setaffinity(process, sizeof(cpus), &cpus) != 0) {
      return after_limits + 2;
    }
    return 0;
  }
};

std::string name_of(int step, std::span<const Limit> limits) {
  constexpr std::array kAfterLimits = {"nice value", "CPUs", "user"};
  const auto index = static_cast<std::size_t>(step - 1);
  if (index < limits.size()) {
    return limits[index].name;
  }
  return index - limits.size() < kAfterLimits.size() ? kAfterLimits[index - limits.size()] : "limits";
}

}  // namespace

// RLIMIT_DATA counts private memory that can be written now. A group counts pages, whoever may write to them and
// wherever they are: memory that was written and then made read-only, which is what the group is for, but also what an
// honest process has besides its private memory, in so far as it is the first to touch it: memory that it shares with
// others, its space in /tmp and copied files, which are in memory too, and what the kernel needs for it. Pages of
// programs, libraries and rules are counted as well, but make room where the group is full.
//
// There is no quota of CPU time: a process that runs on some CPUs alone never has more time than so many CPUs give.
GroupLimits group_limits(SandboxOptions const& options) {
  const std::uint64_t bytes = options.memory_bytes + std::min<std::uint64_t>(kMaxStack, options.memory_bytes) +
                              shared_bytes(options.fds) + options.scratch_bytes + copies_of(options.readable).all;
  return {.memory_bytes = bytes + bytes / kBytesPerTableByte + kKernelBytes,
          .tasks = options.max_threads + 1};  // and bubblewrap's process
}

Status limit_process(pid_t process, SandboxOptions const& options) {
  const std::vector<Limit> limits = limits_of(options);
  const cpu_set_t cpus = cpus_of(options);
  const Helper helper{process, options, limits, cpus};
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(helper.run());
  }
  if (child < 0) {
    return absl::UnavailableError(concat("cannot limit a sandbox: fork: ", std::strerror(errno)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int step = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return step == 0
             ? absl::OkStatus()
             : absl::UnavailableError(concat("the kernel refuses to set the ", name_of(step, limits), " of a sandbox"));
}

}  // namespace catena::sandbox
