// SPDX-License-Identifier: Apache-2.0
#include "sandbox/limits.hpp"

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
/// Addresses beyond the memory that a process may use: code, files, and what allocators reserve without using it.
constexpr std::uint64_t kReservedBytes = std::uint64_t{2} << 30U;
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

/// The size of the largest file that bubblewrap copies. It may be still at that when the limits are set; the program
/// itself has no file that it could write.
std::uint64_t largest_copy(std::vector<ReadOnlyBind> const& readable) {
  std::uint64_t bytes = 0;
  for (ReadOnlyBind const& bind : readable) {
    struct stat status {};
    if (bind.fd >= 0 && ::fstat(bind.fd, &status) == 0) {
      bytes = std::max(bytes, static_cast<std::uint64_t>(status.st_size));
    }
  }
  return bytes;
}

struct Limit {
  const char* name;
  __rlimit_resource resource;
  rlim_t value;
};

std::vector<Limit> limits_of(SandboxOptions const& options) {
  return {
      // What counts: private memory that can be written. Addresses are limited too, for memory that it does not count.
      {"memory", RLIMIT_DATA, options.memory_bytes},
      {"address space", RLIMIT_AS, options.memory_bytes + shared_bytes(options.fds) + kReservedBytes},
      {"stack", RLIMIT_STACK, std::min<rlim_t>(kMaxStack, options.memory_bytes)},
      {"locked memory", RLIMIT_MEMLOCK, 0},
      {"threads", RLIMIT_NPROC, rlim_t{options.max_threads} + 1},  // and bubblewrap's, in its user namespace
      {"size of files", RLIMIT_FSIZE, std::max(options.scratch_bytes, largest_copy(options.readable))},
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
      const rlimit both{limits[i].value, limits[i].value};
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
