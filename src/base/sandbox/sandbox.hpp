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

#include "base/core/process_needs.hpp"

/// Runs untrusted programs in sandboxed processes. A sandboxed process has the descriptors passed to it, the files
/// shown to it read-only, and bounded memory and threads. It has its own user, mount, pid, network, ipc, uts and cgroup
/// namespaces, no capability, and a system call filter. Unless its options say so, it has no device.
///
/// Unless its options say so, it is a single process: it may start threads, but no other process. It may not open,
/// connect or bind a socket; it communicates through the descriptors passed to it. Treat its messages as hostile,
/// including descriptors that it sends. All holders of a descriptor share its flags and its position, and the size of a
/// memory without seals.
namespace catena::sandbox {

/// A file or folder readable by the process.
struct ReadOnlyBind {
  std::filesystem::path source;  ///< on the host, absolute; the user of the process must be able to reach it
  std::filesystem::path target;  ///< in the sandbox, absolute; empty: as `source`
  /// A regular file open for reading. Its bytes replace the content of `source`, even if the process's user could not
  /// read the file. They are copied to memory at the start. Remains the caller's; -1: unused.
  int fd = -1;

  std::filesystem::path const& shown_at() const { return target.empty() ? source : target; }
};

/// The root of an unpacked image, in the order in which a sandbox creates it.
struct Image {
  enum class Kind { kShown, kLink, kMade };
  struct Entry {
    Kind kind;
    std::filesystem::path from;  ///< on the host; the target of a link; empty for a created folder
    std::filesystem::path to;
  };
  std::vector<Entry> entries;
};

/// The image in `folder`, for a sandbox with these `binds`. Reads names only, with the rights of the calling thread,
/// which start() may lack, so the names are limited to the rights of the user naming the folder. InvalidArgument: not
/// an absolute path, or more names than bubblewrap takes. PermissionDenied as open_named_file(). FailedPrecondition: it
/// cannot be read.
Result<Image> read_image(std::filesystem::path const& folder, std::vector<ReadOnlyBind> const& binds);

struct SandboxOptions {
  std::string program;                 ///< absolute path in the sandbox; under /usr, in the root, or one of `readable`
  std::vector<std::string> arguments;  ///< without the program's name
  std::vector<std::pair<std::string, std::string>> environment;  ///< the complete environment, except PWD
  std::vector<int> fds;  ///< the process gets duplicates of them as 3, 4, ...; the originals remain the caller's
  std::vector<ReadOnlyBind> readable;
  /// The root file system, instead of the host's /usr and /etc/ld.so.*; the user of the process must be able to reach
  /// it.
  std::optional<Image> root;
  /// Device nodes that it may open for reading and writing, as far as the node's mode lets `uid`. Absolute paths.
  std::vector<std::filesystem::path> devices;
  /// Requests of ioctl(2) to any of its descriptors, in addition to the ones for pipes and sockets.
  std::vector<IoctlRequests> requests;
  /// It may start programs, which have its rights and limits; each has `memory_bytes` of its own.
  bool starts_programs = false;
  /// It may make Unix sockets for messages (SOCK_SEQPACKET), name them and listen there, but not connect or accept.
  /// Names are those of its own network namespace and of its /tmp.
  bool listens = false;

  /// The user of the process on the host; not root. If the caller is root, both are required. Any other caller can name
  /// only itself, which is the default.
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;

  /// Writable private memory, stacks of threads included. The memory of passed descriptors is not counted.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30U;
  /// Its addresses are limited as well, for memory that does not count as private. False: for drivers that reserve more
  /// addresses than any machine has memory.
  bool limits_addresses = true;
  std::uint32_t max_threads = 16;  ///< with the processes that it starts
  /// Size of its writable /tmp. 0: it cannot write anywhere, and without devices opens files for reading only.
  std::uint64_t scratch_bytes = 0;
  int nice = 0;           ///< 0 to 19
  std::vector<int> cpus;  ///< its CPUs, which it cannot change; empty: the caller's

  /// Folders of existing control groups with limits for memory and CPU time: one of cgroup v2, or one per hierarchy of
  /// v1. The process is moved into them before it runs. Needs sufficient rights of the caller.
  std::vector<std::filesystem::path> cgroups;

  /// Called with each line written to stdout or stderr, without its line end and escaped; at most kMaxLineBytes of the
  /// process. Called in a thread of the sandbox, until the destructor returns. At most about
  /// a megabyte per second is read; a process that writes more waits. Null: the output is read and dropped.
  std::function<void(std::string_view line)> on_line;

  std::chrono::milliseconds start_limit{10'000};  ///< upper bound for start()
  std::string bwrap = "/usr/bin/bwrap";           ///< path of bubblewrap
};

constexpr std::size_t kMaxLineBytes = 512;

/// Adds `needs` to `options`.
void grant(ProcessNeeds const& needs, SandboxOptions& options);

/// A process in a sandbox. Any thread may call wait() and kill() or destroy the object: the process is ended with the
/// rights of the thread that started it. If the starting process dies in any way, the kernel kills the sandbox; if it
/// dies during start(), bubblewrap ends without having executed the program.
class SandboxedProcess {
 public:
  /// Returns when the program has been executed. The files of `options.fds` must stay open only until then.
  ///
  /// Errors: InvalidArgument for impossible options: the user root, a path that is not absolute, no thread, a nice
  /// value out of range. PermissionDenied if the calling thread may not become `uid` or `gid`. Unavailable if the
  /// sandbox cannot be created (bubblewrap is missing, the kernel refuses a namespace) or the program cannot be
  /// executed; the text has the reason, bubblewrap's output and a command that helps, if known. The program has not run
  /// then. No weaker sandbox is used as a fallback. DeadlineExceeded after `start_limit`.
  static Result<std::unique_ptr<SandboxedProcess>> start(SandboxOptions options);

  /// Kills the process and returns when it has ended and its memory is unused. If the kernel does not end it within
  /// seconds, the process and its memory are left, and the log reports it.
  ~SandboxedProcess();
  SandboxedProcess(SandboxedProcess const&) = delete;
  SandboxedProcess& operator=(SandboxedProcess const&) = delete;

  /// The program's process number on the host, for use with /proc; 0 if it ended during the start. After wait() the
  /// number may be another process's.
  pid_t pid() const;
  /// Readable for poll() when the program has ended. Belongs to this object.
  int pidfd() const;

  /// Sends SIGKILL to the whole sandbox. Does not wait for its end. Unavailable if the kernel refuses.
  Status kill();
  /// Waits until the program and the rest of the sandbox have ended. Returns the exit status; 128 + signal number if a
  /// signal ended it. DeadlineExceeded after `limit`.
  Result<int> wait(std::chrono::milliseconds limit);

 private:
  class SandboxSupervisor;
  explicit SandboxedProcess(std::unique_ptr<SandboxSupervisor> supervisor);
  std::unique_ptr<SandboxSupervisor> supervisor_;
};

}  // namespace catena::sandbox
