// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Processes that run programs which nobody here has to trust. A sandboxed process has the descriptors that it is
/// given, the files that it is shown read-only, a bounded amount of memory and a bounded number of threads. It has
/// user, mount, pid, network, ipc, uts and cgroup namespaces of its own, no capability and no device, and a system call
/// filter.
///
/// It is one process: it may start threads, but no other process. It may not open, connect or bind a socket; it talks
/// through the descriptors that it was given. What it sends through them is hostile: descriptors of its own among it,
/// and a descriptor's flags, its position and the size of a memory without seals are common to all who have it.
namespace catena::sandbox {

/// A file or folder that the process may read.
struct ReadOnlyBind {
  std::filesystem::path source;  ///< on the host, absolute; the user of the process must be able to reach it
  std::filesystem::path target;  ///< in the sandbox, absolute; empty: as `source`
  /// A regular file that is open for reading, whose bytes the process sees in place of those of `source`, whether its
  /// user could read that or not; they are copied to memory when it starts. Stays the caller's; -1: none.
  int fd = -1;

  std::filesystem::path const& shown_at() const { return target.empty() ? source : target; }
};

/// What is at the root of an unpacked image, in the order in which a sandbox makes it.
struct Image {
  enum class Kind { kShown, kLink, kMade };
  struct Entry {
    Kind kind;
    std::filesystem::path from;  ///< on the host; of a link where it points to; of a folder that is made nothing
    std::filesystem::path to;
  };
  std::vector<Entry> entries;
};

/// The image in `folder`, for a sandbox with the `binds` that it is to have. Reads names alone, with the rights of the
/// calling thread, which start() may not have: who names the folder may see no other one. InvalidArgument: not an
/// absolute path, or more names than bubblewrap takes. PermissionDenied as open_named_file(). FailedPrecondition: it
/// cannot be read.
Result<Image> read_image(std::filesystem::path const& folder, std::vector<ReadOnlyBind> const& binds);

struct SandboxOptions {
  std::string program;                 ///< absolute path in the sandbox; under /usr, in the root, or one of `readable`
  std::vector<std::string> arguments;  ///< without the program's name
  std::vector<std::pair<std::string, std::string>> environment;  ///< nothing else is in it but PWD
  std::vector<int> fds;  ///< the process has duplicates of them as 3, 4, ...; the caller's stay the caller's
  std::vector<ReadOnlyBind> readable;
  /// The root file system, instead of the host's /usr and /etc/ld.so.*; the user of the process must be able to reach
  /// it.
  std::optional<Image> root;

  /// Who the process is on the host; not root. Root has to name both. Anyone else can name only himself, as by default.
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;

  /// Private memory that it can write to, stacks of threads included. The memory of passed descriptors is not counted.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30U;
  std::uint32_t max_threads = 16;
  /// What it may write to /tmp, in all. 0: there is no place where it can write, and it can open files to read only.
  std::uint64_t scratch_bytes = 0;
  int nice = 0;           ///< 0 to 19
  std::vector<int> cpus;  ///< the only CPUs that it runs on, which it cannot change; empty: those of the caller

  /// Folders of control groups that are there, with their limits, for memory and CPU time: one of cgroup v2, or one for
  /// each hierarchy of v1. The process is put into them before it runs. The caller's rights have to suffice.
  std::vector<std::filesystem::path> cgroups;

  /// Called with each line that the process writes to stdout or stderr: without its end, at most kMaxLineBytes, and
  /// with
  /// '?' for what is not printable ASCII. Called in a thread of the sandbox, until the destructor returns. No more than
  /// about a megabyte per second is read: a process that writes more waits. Null: what it writes is read and dropped.
  std::function<void(std::string_view line)> on_line;

  std::chrono::milliseconds start_limit{10'000};  ///< how long start() waits at most
  std::string bwrap = "/usr/bin/bwrap";           ///< bubblewrap
};

constexpr std::size_t kMaxLineBytes = 512;

/// A process in a sandbox. wait() and kill() may be called by any thread, and the object be destroyed by any: the
/// process is ended with the rights of the thread that started it. If the process that started it dies, in whichever
/// way, the kernel kills the sandbox. (Where it dies during start(), bubblewrap may be left, waiting for good; it has
/// not executed the program.)
class SandboxedProcess {
 public:
  /// Returns when the program has been executed. The files of `options.fds` have to stay open until then only.
  ///
  /// Errors: InvalidArgument for options that cannot be: the user root, a path that is not absolute, no thread, a nice
  /// value out of range. PermissionDenied where the calling thread may not become `uid` or `gid`. Unavailable where the
  /// sandbox cannot be made (bubblewrap is missing, the kernel refuses a namespace) or the program cannot be executed;
  /// the text has the reason, what bubblewrap said, and the command that helps where one is known. The program has not
  /// run then. There is no weaker sandbox to fall back to. DeadlineExceeded after `start_limit`.
  static Result<std::unique_ptr<SandboxedProcess>> start(SandboxOptions options);

  /// Kills the process and returns when it is gone: nothing uses the memory that it was given any more. One that the
  /// kernel does not end within seconds is left behind, with that memory, and the log says so.
  ~SandboxedProcess();
  SandboxedProcess(SandboxedProcess const&) = delete;
  SandboxedProcess& operator=(SandboxedProcess const&) = delete;

  /// The program's process number on the host, for what /proc says of it; 0 where it ended while it was started. The
  /// number may be another process's after wait().
  pid_t pid() const;
  /// Readable for poll() when the program has ended. Belongs to this object.
  int pidfd() const;

  /// SIGKILL to all of the sandbox. Does not wait for its end. Unavailable where the kernel refuses that.
  Status kill();
  /// Waits until the program has ended and nothing of the sandbox is left. Its exit status; 128 + signal number where a
  /// signal ended it. DeadlineExceeded after `limit`.
  Result<int> wait(std::chrono::milliseconds limit);

 private:
  class Keeper;
  explicit SandboxedProcess(std::unique_ptr<Keeper> keeper);
  std::unique_ptr<Keeper> keeper_;
};

}  // namespace catena::sandbox
