// SPDX-License-Identifier: Apache-2.0
#include "gpu/check/checker_process.hpp"

#include <catena/core/text.hpp>

#include "base/core/file_descriptor.hpp"
#include "base/core/replace_file.hpp"
#include "base/ipc/shared_memory.hpp"
#include "base/sandbox/reserved_user.hpp"
#include "base/sandbox/sandbox.hpp"
#include "base/sandbox/spawn.hpp"
#include "gpu/check/checker_protocol.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace catena::static_check {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

Status failed(std::string_view what) { return absl::UnavailableError(concat(what, ": ", std::strerror(errno))); }

/// A running checker, killed by the destructor.
class CheckerProcess {
 public:
  CheckerProcess() = default;
  CheckerProcess(CheckerProcess const&) = delete;
  CheckerProcess& operator=(CheckerProcess const&) = delete;
  virtual ~CheckerProcess() = default;
  /// Its exit status; DeadlineExceeded after `limit`.
  virtual Result<int> wait(milliseconds limit) = 0;
};

class SandboxedChecker : public CheckerProcess {
 public:
  static Result<std::unique_ptr<CheckerProcess>> start(std::string const& program, std::vector<int> fds,
                                                       milliseconds limit) {
    auto checker = std::make_unique<SandboxedChecker>();
    checker->user_ = sandbox::take_process_user();
    sandbox::SandboxOptions options;
    options.program = program;
    options.readable = {{program, {}}};
    options.fds = std::move(fds);
    options.uid = options.gid = checker->user_.id;
    options.memory_bytes = kCheckerMemory;
    options.start_limit = limit;
    CATENA_ASSIGN_OR_RETURN(checker->process_, sandbox::SandboxedProcess::start(std::move(options)));
    return checker;
  }
  Result<int> wait(milliseconds limit) override { return process_->wait(limit); }

 private:
  sandbox::ProcessUser user_;
  std::unique_ptr<sandbox::SandboxedProcess> process_;
};

/// With the rights of the caller.
class PlainChecker : public CheckerProcess {
 public:
  static Result<std::unique_ptr<CheckerProcess>> start(std::string const& program, std::vector<int> fds) {
    const FileDescriptor null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    auto checker = std::make_unique<PlainChecker>();
    CATENA_ASSIGN_OR_RETURN(
        checker->pid_,
        sandbox::spawn({.command = {program}, .output = null.get(), .fds = std::move(fds), .uid = {}, .gid = {}}));
    checker->pidfd_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, checker->pid_, 0)));
    return checker->pidfd_ ? Result<std::unique_ptr<CheckerProcess>>(std::move(checker)) : failed("pidfd");
  }
  ~PlainChecker() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      reap();
    }
  }
  Result<int> wait(milliseconds limit) override {
    pollfd poll{pidfd_.get(), POLLIN, 0};
    if (::poll(&poll, 1, static_cast<int>(limit.count())) <= 0) {
      return absl::DeadlineExceededError("the check of a kernel still runs");
    }
    const int status = reap();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  int reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

  pid_t pid_ = 0;
  FileDescriptor pidfd_;
};

milliseconds until(Clock::time_point deadline) {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline - Clock::now()));
}

/// All bytes up to the end of the pipe; empty if it does not end in time, or has too many.
std::string read_to_end(int pipe, Clock::time_point deadline) {
  std::string output;
  std::array<char, 16384> part{};
  for (;;) {
    pollfd poll{pipe, POLLIN, 0};
    const int polled = ::poll(&poll, 1, static_cast<int>(until(deadline).count()));
    if (polled < 0 && errno == EINTR) {
      continue;
    }
    const ssize_t bytes = polled > 0 ? ::read(pipe, part.data(), part.size()) : -1;
    if (bytes == 0) {
      return output;
    }
    if (bytes < 0 || output.size() + static_cast<std::size_t>(bytes) > kMaxCheckerOutput) {
      return {};
    }
    output.append(part.data(), static_cast<std::size_t>(bytes));
  }
}

}  // namespace

Result<std::string> run_checker(std::filesystem::path const& program, std::string_view input, milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  CATENA_ASSIGN_OR_RETURN(const FileDescriptor input_file, ipc::make_memory_file("catena-kernel", [input](int file) {
                            return write_all(file, std::as_bytes(std::span(input))) ? absl::OkStatus()
                                                                                    : failed("file in memory");
                          }));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return failed("pipe");
  }
  const FileDescriptor output_end(ends[0]);
  FileDescriptor program_end(ends[1]);
  static_assert(kCheckerInput == STDERR_FILENO + 1 && kCheckerOutput == kCheckerInput + 1);
  std::vector<int> fds = {input_file.get(), program_end.get()};
  Result<std::unique_ptr<CheckerProcess>> process =
      ::geteuid() == 0 ? SandboxedChecker::start(program.string(), std::move(fds), limit)
                       : PlainChecker::start(program.string(), std::move(fds));
  CATENA_RETURN_IF_ERROR(process.status());
  program_end.close();
  std::string output = read_to_end(output_end.get(), deadline);
  if (output.empty()) {
    return output;  // it is killed
  }
  const Result<int> status = (*process)->wait(until(deadline));
  return status.ok() && *status == 0 ? output : std::string();
}

}  // namespace catena::static_check
