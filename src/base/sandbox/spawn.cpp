// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/spawn.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/core/file_descriptor.hpp"

namespace catena::sandbox {
namespace {

constexpr int kFirstFd = STDERR_FILENO + 1;

/// What the new process does before it executes the program. It shares nothing with the threads of the old one, of
/// which it is a copy: no call here may allocate or lock, and the system is called directly where the C library would
/// tell other threads.
struct Child {
  pid_t parent;
  int null;
  int output;
  int report;  ///< where what failed is written to
  std::span<const FileDescriptor> fds;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  char* const* argv;

  enum class Step : int { kUser, kOther };

  void fail(Step step) const {
    const std::array<int, 2> what = {static_cast<int>(step), errno};
    [[maybe_unused]] const ssize_t written = ::write(report, what.data(), sizeof(what));
    ::_exit(127);
  }

  void check(long result, Step step = Step::kOther) const {
    if (result < 0) {
      fail(step);
    }
  }

  void reset_signals() const {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) {
      ::sigaction(signal, &action, nullptr);  // fails for those that cannot be handled
    }
    sigset_t none;
    ::sigemptyset(&none);
    check(::sigprocmask(SIG_SETMASK, &none, nullptr));
  }

  void become_user() const {
    if (uid) {
      check(::syscall(SYS_setgroups, 0, nullptr), Step::kUser);
      check(::syscall(SYS_setresgid, *gid, *gid, *gid), Step::kUser);
      check(::syscall(SYS_setresuid, *uid, *uid, *uid), Step::kUser);
    }
  }

  void place_fds() const {
    check(::dup2(null, STDIN_FILENO));
    check(::dup2(output, STDOUT_FILENO));
    check(::dup2(output, STDERR_FILENO));
    for (std::size_t i = 0; i < fds.size(); ++i) {
      check(::dup2(fds[i].get(), kFirstFd + static_cast<int>(i)));
    }
    // `report` still has to be written to
    check(::syscall(SYS_close_range, kFirstFd + static_cast<unsigned>(fds.size()), ~0U, CLOSE_RANGE_CLOEXEC));
  }

  void execute() const {
    reset_signals();
    check(::setsid());  // a terminal's signals are for the parent
    ::umask(S_IWGRP | S_IWOTH);
    become_user();
    check(::prctl(PR_SET_PDEATHSIG, SIGKILL));  // a change of user resets it
    if (::getppid() != parent) {
      ::_exit(127);  // it died before
    }
    place_fds();
    std::array<char*, 1> environment = {nullptr};
    ::execve(argv[0], argv, environment.data());
    fail(Step::kOther);
  }
};

Status last_error(std::string_view what) { return absl::UnavailableError(concat(what, ": ", std::strerror(errno))); }

/// A duplicate with a number of at least `least`.
Result<FileDescriptor> duplicate(int fd, int least) {
  FileDescriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, least));
  return copy ? Result<FileDescriptor>(std::move(copy)) : last_error(concat("descriptor ", fd));
}

/// OK once the program is executed; what the child says else.
Status read_report(int report, SpawnOptions const& options) {
  std::array<int, 2> what{};
  ssize_t bytes = 0;
  do {
    bytes = ::read(report, what.data(), sizeof(what));
  } while (bytes < 0 && errno == EINTR);
  if (bytes == 0) {
    return absl::OkStatus();
  }
  const char* const reason = bytes == sizeof(what) ? std::strerror(what[1]) : "no report";
  if (what[0] == static_cast<int>(Child::Step::kUser)) {
    return absl::PermissionDeniedError(
        concat("cannot run a process as user ", *options.uid, ", group ", *options.gid, ": ", reason));
  }
  return absl::UnavailableError(concat(options.command[0], ": ", reason));
}

}  // namespace

Result<pid_t> spawn(SpawnOptions const& options) {
  // all of them above the numbers that the child has, so that it overwrites none that it still needs
  const int least = kFirstFd + static_cast<int>(options.fds.size());
  std::vector<FileDescriptor> fds;
  for (const int fd : options.fds) {
    CATENA_ASSIGN_OR_RETURN(FileDescriptor copy, duplicate(fd, least));
    fds.push_back(std::move(copy));
  }
  CATENA_ASSIGN_OR_RETURN(const FileDescriptor output, duplicate(options.output, least));
  const FileDescriptor opened(::open("/dev/null", O_RDWR | O_CLOEXEC));
  CATENA_ASSIGN_OR_RETURN(const FileDescriptor null, duplicate(opened.get(), least));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return last_error("pipe");
  }
  const FileDescriptor report_end(ends[0]);
  FileDescriptor low(ends[1]);
  CATENA_ASSIGN_OR_RETURN(FileDescriptor report, duplicate(low.get(), least));
  low.close();

  std::vector<char*> argv;
  for (std::string const& argument : options.command) {
    argv.push_back(const_cast<char*>(argument.c_str()));  // execve() does not write to them
  }
  argv.push_back(nullptr);
  const Child child{::getpid(), null.get(), output.get(), report.get(), fds, options.uid, options.gid, argv.data()};
  const pid_t pid = ::fork();
  if (pid == 0) {
    child.execute();
  }
  if (pid < 0) {
    return last_error("fork");
  }
  report.close();
  if (Status status = read_report(report_end.get(), options); !status.ok()) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return status;
  }
  return pid;
}

}  // namespace catena::sandbox
