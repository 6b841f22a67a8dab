// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/seccomp_filter.hpp"

#include "base/ipc/shared_memory.hpp"

#include <catena/core/text.hpp>

#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

namespace catena::sandbox {
namespace {

using Context = std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, decltype(&seccomp_release)>;

/// Allowed with any arguments. Files are reached through the mounts alone, processes through the pid namespace. Not
/// there: memfd_create and System V's shared memory, whose memory no limit of a process counts.
constexpr std::array kAllowed = {
    // descriptors that it has
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2", "close",
    "close_range", "lseek", "dup", "dup2", "dup3", "pipe", "pipe2", "fstat", "poll", "ppoll", "select", "pselect6",
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2",
    "timerfd_create", "timerfd_settime", "timerfd_gettime",
    // sockets that it has
    "recvfrom", "recvmsg", "recvmmsg", "sendmsg", "sendmmsg", "shutdown", "getsockopt", "getsockname", "getpeername",
    // names of files
    "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getcwd",
    "getdents64", "statfs", "fstatfs", "fadvise64", "umask",
    // memory
    "munmap", "mprotect", "mremap", "madvise", "brk", "msync", "mincore", "membarrier",
    // threads
    "futex", "set_robust_list", "get_robust_list", "set_tid_address", "rseq", "gettid", "sched_yield",
    "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min",
    "getpriority", "getcpu",
    // time
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time", "times",
    // what it is
    "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid", "getresgid", "getpgrp",
    "getpgid", "getsid", "getrusage", "getrlimit", "sysinfo", "uname", "getrandom", "capget",
    // signals and the end
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait", "rt_sigsuspend",
    "sigaltstack", "restart_syscall", "kill", "tgkill", "exit", "exit_group", "wait4", "waitid",
    // bubblewrap executes the program after it has loaded the filter. Another program in its place gains nothing: the
    // filter and the namespaces stay, and set-user-id has no effect.
    "execve",
    // the C library's start on x86-64
    "arch_prctl"};

/// For a process that has a place to write.
constexpr std::array kAllowedForWriters = {"open",      "openat", "creat",    "ftruncate", "fsync",
                                           "fdatasync", "unlink", "unlinkat", "rename",    "renameat",
                                           "renameat2", "mkdir",  "mkdirat",  "rmdir"};

/// For a process that starts programs.
constexpr std::array kAllowedForStarters = {"fork", "vfork", "setpgid"};

/// A rule in numbers of libseccomp's: 0, or what it says is wrong.
template <typename... Arguments>
int allow(Context const& context, int call, Arguments... arguments) {
  return seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, call, sizeof...(arguments), arguments...);
}

/// The C library may not know a call that another machine has; then there is nothing to allow.
int allow_by_name(Context const& context, const char* name) {
  const int call = seccomp_syscall_resolve_name(name);
  return call == __NR_SCMP_ERROR ? 0 : allow(context, call);
}

/// Each of `values` of argument `index`.
int allow_values(Context const& context, int call, unsigned index, std::initializer_list<std::uint64_t> values) {
  int wrong = 0;
  for (const std::uint64_t value : values) {
    wrong = wrong != 0 ? wrong : allow(context, call, SCMP_CMP64(index, SCMP_CMP_EQ, value));
  }
  return wrong;
}

/// Threads, or processes as well, but no namespace.
int allow_clones(Context const& context, bool starts_programs) {
  constexpr std::uint64_t kThread = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND;
  constexpr std::uint64_t kOther = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                   CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE | CLONE_PARENT | CLONE_UNTRACED;
  return starts_programs ? allow(context, SCMP_SYS(clone), SCMP_A0_64(SCMP_CMP_MASKED_EQ, kOther, 0))
                         : allow(context, SCMP_SYS(clone), SCMP_A0_64(SCMP_CMP_MASKED_EQ, kThread | kOther, kThread));
}

/// Private memory, which RLIMIT_DATA counts, and memory of descriptors. Not: shared memory without a descriptor and
/// mappings that grow like stacks, which it does not count, and huge pages, which are the host's.
int allow_mmap(Context const& context) {
  constexpr std::uint64_t kMask = MAP_TYPE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_HUGETLB;
  int wrong = 0;
  for (const std::uint64_t flags : {MAP_PRIVATE | MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED, MAP_SHARED_VALIDATE}) {
    wrong = wrong != 0 ? wrong : allow(context, SCMP_SYS(mmap), SCMP_A3_64(SCMP_CMP_MASKED_EQ, kMask, flags));
  }
  return wrong;
}

/// Files to be read.
int allow_reading(Context const& context) {
  constexpr std::uint64_t kMask = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;
  const int wrong = allow(context, SCMP_SYS(openat), SCMP_A2_64(SCMP_CMP_MASKED_EQ, kMask, O_RDONLY));
  return wrong != 0 ? wrong : allow(context, SCMP_SYS(open), SCMP_A1_64(SCMP_CMP_MASKED_EQ, kMask, O_RDONLY));
}

/// Sockets that are connected to each other and stay so: a datagram socket could be sent to any address.
int allow_socket_pairs(Context const& context) {
  constexpr std::uint64_t kTypeMask = 0xf;
  int wrong = 0;
  for (const std::uint64_t type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    wrong = wrong != 0 ? wrong
                       : allow(context, SCMP_SYS(socketpair), SCMP_A0_64(SCMP_CMP_EQ, AF_UNIX),
                               SCMP_A1_64(SCMP_CMP_MASKED_EQ, kTypeMask, type));
  }
  return wrong;
}

int allow_socket_options(Context const& context) {
  int wrong = 0;
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO, SO_RCVBUF, SO_SNDBUF}) {
    wrong = wrong != 0 ? wrong
                       : allow(context, SCMP_SYS(setsockopt), SCMP_A1_64(SCMP_CMP_EQ, SOL_SOCKET),
                               SCMP_A2_64(SCMP_CMP_EQ, static_cast<std::uint64_t>(option)));
  }
  return wrong;
}

/// Unix sockets for messages that listen. Without connect(2) they reach nobody.
int allow_listening(Context const& context) {
  constexpr std::uint64_t kTypeMask = 0xf;
  int wrong = allow(context, SCMP_SYS(socket), SCMP_A0_64(SCMP_CMP_EQ, AF_UNIX),
                    SCMP_A1_64(SCMP_CMP_MASKED_EQ, kTypeMask, SOCK_SEQPACKET));
  for (const int call : {SCMP_SYS(bind), SCMP_SYS(listen)}) {
    wrong = wrong != 0 ? wrong : allow(context, call);
  }
  return wrong != 0 ? wrong
                    : allow(context, SCMP_SYS(setsockopt), SCMP_A1_64(SCMP_CMP_EQ, SOL_SOCKET),
                            SCMP_A2_64(SCMP_CMP_EQ, SO_PASSCRED));
}

/// Requests to devices.
int allow_requests(Context const& context, std::vector<IoctlRequests> const& requests) {
  int wrong = 0;
  for (IoctlRequests const& some : requests) {
    wrong = wrong != 0 ? wrong : allow(context, SCMP_SYS(ioctl), SCMP_A1_64(SCMP_CMP_MASKED_EQ, some.mask, some.value));
  }
  return wrong;
}

/// Calls that are allowed for some arguments only.
int allow_by_arguments(Context const& context, FilteredCalls const& calls) {
  int wrong = 0;
  const auto also = [&wrong](auto const& rule) { wrong = wrong != 0 ? wrong : rule(); };
  also([&] { return allow_clones(context, calls.starts_programs); });
  also([&] { return allow_mmap(context); });
  also([&] { return calls.can_write ? 0 : allow_reading(context); });
  also([&] { return allow_socket_pairs(context); });
  also([&] { return allow_socket_options(context); });
  also([&] { return calls.listens ? allow_listening(context) : 0; });
  also([&] { return allow(context, SCMP_SYS(sendto), SCMP_A4_64(SCMP_CMP_EQ, 0)); });  // to where it is connected
  also([&] { return allow(context, SCMP_SYS(prlimit64), SCMP_A0_64(SCMP_CMP_EQ, 0)); });
  also([&] { return allow_values(context, SCMP_SYS(ioctl), 1, {TCGETS, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX}); });
  also([&] { return allow_requests(context, calls.requests); });
  also([&] {
    return allow_values(context, SCMP_SYS(fcntl), 1,
                        {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GET_SEALS});
  });
  also([&] {
    return allow_values(context, SCMP_SYS(prctl), 0, {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_GET_DUMPABLE});
  });
  return wrong;
}

/// What libraries do without where the kernel does not have it.
int deny_as_missing(Context const& context) {
  constexpr std::uint32_t kMissing = SCMP_ACT_ERRNO(ENOSYS);
  constexpr int kFirstNewer = 446;  // after those of Linux 5.12; the same number on all architectures
  constexpr int kEndNewer = 512;    // x32's begin
  int wrong = 0;
  for (const int call : {SCMP_SYS(clone3), SCMP_SYS(openat2)}) {
    wrong = wrong != 0 ? wrong : seccomp_rule_add(context.get(), kMissing, call, 0);
  }
  for (int call = kFirstNewer; call < kEndNewer; ++call) {
    wrong = wrong != 0 ? wrong : seccomp_rule_add(context.get(), kMissing, call, 0);
  }
  return wrong;
}

/// What is said to be done and is not: libraries give up where a thread cannot be put on a processor.
int pretend(Context const& context) {
  return seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(0), SCMP_SYS(sched_setaffinity), 0);
}

int allow_by_names(Context const& context, std::span<const char* const> names) {
  int wrong = 0;
  for (const char* name : names) {
    wrong = wrong != 0 ? wrong : allow_by_name(context, name);
  }
  return wrong;
}

int add_rules(Context const& context, FilteredCalls const& calls) {
  int wrong = seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  wrong = wrong != 0 ? wrong : allow_by_names(context, kAllowed);
  wrong = wrong != 0 || !calls.can_write ? wrong : allow_by_names(context, kAllowedForWriters);
  wrong = wrong != 0 || !calls.starts_programs ? wrong : allow_by_names(context, kAllowedForStarters);
  wrong = wrong != 0 ? wrong : allow_by_arguments(context, calls);
  wrong = wrong != 0 ? wrong : pretend(context);
  return wrong != 0 ? wrong : deny_as_missing(context);
}

}  // namespace

FilteredCalls FilteredCalls::of(SandboxOptions const& options) {
  return {.can_write = options.scratch_bytes > 0 || !options.devices.empty(),
          .starts_programs = options.starts_programs,
          .listens = options.listens,
          .requests = options.requests};
}

Result<FileDescriptor> make_seccomp_filter(FilteredCalls const& calls) {
  const Context context(seccomp_init(SCMP_ACT_ERRNO(EPERM)), &seccomp_release);
  if (context == nullptr) {
    return absl::UnavailableError("libseccomp cannot make a system call filter");
  }
  const int refused = add_rules(context, calls);
  return ipc::make_memory_file("catena-seccomp", [&context, refused](int file) {
    const int wrong = refused != 0 ? refused : seccomp_export_bpf(context.get(), file);
    return wrong == 0
               ? absl::OkStatus()
               : absl::UnavailableError(concat("libseccomp refuses the system call filter: ", std::strerror(-wrong)));
  });
}

}  // namespace catena::sandbox
