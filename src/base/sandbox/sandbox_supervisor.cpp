// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/sandbox_supervisor.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <span>
#include <utility>

#include "base/core/replace_file.hpp"
#include "base/ipc/shared_memory.hpp"
#include "base/sandbox/bwrap.hpp"
#include "base/sandbox/limits.hpp"
#include "base/sandbox/proc.hpp"
#include "base/sandbox/seccomp_filter.hpp"
#include "base/sandbox/spawn.hpp"

namespace catena::sandbox {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kReadBytes = 16384;
constexpr milliseconds kReadPause{16};  // with kReadBytes: a megabyte per second
constexpr std::chrono::microseconds kPoll{200};
constexpr milliseconds kKillLimit{5000};
constexpr milliseconds kFailurePause{500};

Status failed(std::string_view what) {
  return absl::UnavailableError(concat("cannot make a sandbox: ", what, ": ", std::strerror(errno)));
}

/// Whether `fd` can be read within `limit`.
bool await_readable(int fd, milliseconds limit) {
  pollfd poll{fd, POLLIN, 0};
  return ::poll(&poll, 1, static_cast<int>(std::clamp<std::int64_t>(limit.count(), 0, 1'000'000'000))) > 0;
}

milliseconds until(std::chrono::steady_clock::time_point deadline) {
  return std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
}

FileDescriptor open_process(pid_t process) {
  return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

/// OK, too, where it has ended.
Status kill_process(FileDescriptor const& process) {
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) == 0 || errno == ESRCH) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(concat("a sandboxed process cannot be killed: ", std::strerror(errno)));
}

/// The arguments in a file, each with a zero byte after it.
Result<FileDescriptor> as_file(std::vector<std::string> const& arguments) {
  std::string text;
  for (std::string const& argument : arguments) {
    text.append(argument.c_str(), argument.size() + 1);
  }
  return ipc::make_memory_file("catena-bwrap", [&text](int file) {
    return write_all(file, std::as_bytes(std::span(text))) ? absl::OkStatus() : failed("file in memory");
  });
}

Status join(std::filesystem::path const& cgroup, pid_t process) {
  const std::string path = cgroup / "cgroup.procs";
  const std::string number = concat(process);
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return ::write(file.get(), number.data(), number.size()) == static_cast<ssize_t>(number.size()) ? absl::OkStatus()
                                                                                                  : failed(path);
}

Result<std::pair<FileDescriptor, FileDescriptor>> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return failed("pipe");
  }
  return std::pair{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

/// Copies a file in memory, from its start, into a pipe.
Status copy_to_pipe(int file, int pipe) {
  for (off_t at = 0;;) {
    const ssize_t bytes = ::sendfile(pipe, file, &at, kReadBytes);
    if (bytes <= 0) {
      return bytes == 0 ? absl::OkStatus() : failed("pipe");
    }
  }
}

}  // namespace

SandboxedProcess::SandboxSupervisor::SandboxSupervisor(SandboxOptions options)
    : options_(std::move(options)), lines_(options_.on_line) {}

Status SandboxedProcess::SandboxSupervisor::start() {
  if (!tasks_) {
    return failed("eventfd");
  }
  std::promise<Status> started;
  std::future<Status> status = started.get_future();
  thread_ = std::thread([this, promise = std::move(started)]() mutable { run(std::move(promise)); });
  return status.get();
}

SandboxedProcess::SandboxSupervisor::~SandboxSupervisor() {
  if (!thread_.joinable()) {
    return;
  }
  if (const Status ended = end(); !ended.ok()) {
    spdlog::error("process {} of '{}' is left running: {}", program_ != 0 ? program_ : outer_, options_.program,
                  std::string(ended.message()));
  }
  const auto stop = [this] {
    is_ending_ = true;
    return absl::OkStatus();
  };
  tasks_.run(stop).IgnoreError();
  thread_.join();
}

/// Kills it and waits until it is gone.
Status SandboxedProcess::SandboxSupervisor::end() {
  Status status;
  // bubblewrap outside ends when the first one does
  for (FileDescriptor const* process : {&first_fd_, &outer_fd_}) {
    if (!*process) {
      continue;
    }
    status = kill(*process);
    if (status.ok()) {
      status = wait(kKillLimit).status();
    }
    if (status.ok()) {
      return status;
    }
  }
  return status;
}

void SandboxedProcess::SandboxSupervisor::run(std::promise<Status> started) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are for the threads that wait for them
  Status status = launch();
  const bool is_started = status.ok();
  started.set_value(std::move(status));
  if (is_started) {
    lines_.add(unsorted_);
  }
  serve(is_started);
}

Status SandboxedProcess::SandboxSupervisor::launch() {
  const auto deadline = Clock::now() + options_.start_limit;
  // Bubblewrap reads the filter when the sandbox is made, and waits for it. With an empty one, as it is when this
  // process dies before, it does not execute the program: its own way to die with this process begins only later.
  CATENA_ASSIGN_OR_RETURN(const FileDescriptor filter, make_seccomp_filter(FilteredCalls::of(options_)));
  CATENA_ASSIGN_OR_RETURN(auto filter_pipe, make_pipe());
  CATENA_RETURN_IF_ERROR(spawn_bwrap(filter_pipe.first.get()));
  filter_pipe.first.close();
  outer_fd_ = open_process(outer_);
  if (!outer_fd_) {
    Status status = failed("pidfd");
    ::kill(outer_, SIGKILL);
    ::waitpid(outer_, nullptr, 0);
    return status;
  }
  CATENA_RETURN_IF_ERROR(await_namespace(deadline));
  if (Status status = admit(filter.get(), filter_pipe.second.get()); !status.ok()) {
    // bubblewrap may have failed meanwhile, and says better why
    return await_readable(outer_fd_.get(), kFailurePause) ? explain() : status;
  }
  filter_pipe.second.close();
  return await_program(deadline);
}

/// Limits the first process, and lets it execute the program.
Status SandboxedProcess::SandboxSupervisor::admit(int filter, int filter_pipe) {
  CATENA_RETURN_IF_ERROR(limit_process(first_, options_));
  for (std::filesystem::path const& cgroup : options_.cgroups) {
    CATENA_RETURN_IF_ERROR(join(cgroup, first_));
  }
  return copy_to_pipe(filter, filter_pipe);
}

Status SandboxedProcess::SandboxSupervisor::spawn_bwrap(int filter) {
  const BwrapFds numbers = BwrapFds::after(options_.fds.size());
  const std::vector<std::string> arguments = bwrap_arguments(options_, numbers);
  CATENA_ASSIGN_OR_RETURN(const FileDescriptor arguments_file, as_file(arguments));
  CATENA_ASSIGN_OR_RETURN(auto status, make_pipe());
  CATENA_ASSIGN_OR_RETURN(auto output, make_pipe());
  SpawnOptions spawned;
  spawned.command = {options_.bwrap, "--args", concat(numbers.arguments), "--", options_.program};
  spawned.command.insert(spawned.command.end(), options_.arguments.begin(), options_.arguments.end());
  spawned.output = output.second.get();
  spawned.fds = options_.fds;
  spawned.fds.insert(spawned.fds.end(), {arguments_file.get(), filter, status.second.get()});
  for (ReadOnlyBind const& bind : options_.readable) {
    if (bind.fd >= 0) {
      if (::lseek(bind.fd, 0, SEEK_SET) != 0) {
        return failed(bind.source.string());
      }
      spawned.fds.push_back(bind.fd);
    }
  }
  if (::geteuid() == 0) {
    spawned.uid = options_.uid;
    spawned.gid = options_.gid;
  }
  Result<pid_t> outer = spawn(spawned);
  if (!outer.ok()) {
    return absl::IsUnavailable(outer.status()) ? explain_failure(options_, std::string(outer.status().message()))
                                               : outer.status();
  }
  outer_ = *outer;
  status_ = std::move(status.first);
  output_ = std::move(output.first);
  for (FileDescriptor const* end : {&status_, &output_}) {
    ::fcntl(end->get(), F_SETFL, O_NONBLOCK);  // a pipe's end takes it
  }
  return absl::OkStatus();
}

Status SandboxedProcess::SandboxSupervisor::await_namespace(Clock::time_point deadline) {
  std::string text;
  while (first_ == 0) {
    if (!await_readable(status_.get(), until(deadline))) {
      return absl::DeadlineExceededError("bubblewrap did not make a sandbox in time");
    }
    std::array<char, 1024> part{};
    const ssize_t bytes = ::read(status_.get(), part.data(), part.size());
    if (bytes <= 0) {
      return explain();
    }
    text.append(part.data(), static_cast<std::size_t>(bytes));
    first_ = find_child_pid(text);
  }
  first_fd_ = open_process(first_);
  // the number is another process's only if the first one is gone, and then bubblewrap waited for it
  const std::optional<ProcessStat> stat = read_process_stat(first_);
  if (!first_fd_ || !stat || stat->parent != outer_) {
    first_fd_ = FileDescriptor();
    return explain();
  }
  return absl::OkStatus();
}

Status SandboxedProcess::SandboxSupervisor::await_program(Clock::time_point deadline) {
  while (Clock::now() < deadline) {
    const pid_t program = first_child_of(first_);
    const std::optional<ProcessStat> stat = program > 0 ? read_process_stat(program) : std::nullopt;
    // until it executes the program it is a copy of bubblewrap
    if (stat && stat->parent == first_ && stat->name != "bwrap") {
      program_ = program;
      return absl::OkStatus();
    }
    if (has_ended()) {
      drain_output();
      // the program was so fast that nobody saw it, unless it is bubblewrap that ended
      return unsorted_.starts_with("bwrap: ") ? explain() : absl::OkStatus();
    }
    std::this_thread::sleep_for(kPoll);
  }
  return absl::DeadlineExceededError(concat("'", options_.program, "' was not executed in time"));
}

/// Bubblewrap ended, or is about to: why.
Status SandboxedProcess::SandboxSupervisor::explain() {
  if (!await_readable(outer_fd_.get(), kKillLimit)) {
    kill_process(outer_fd_).IgnoreError();
  }
  drain_output();
  std::string text;
  LineSplitter splitter([&text](std::string_view line) { text += concat(text.empty() ? "" : "; ", line); });
  splitter.add(unsorted_);
  splitter.finish();
  return explain_failure(options_, text);
}

bool SandboxedProcess::SandboxSupervisor::has_ended() const { return await_readable(outer_fd_.get(), milliseconds(0)); }

/// What has come out of the sandbox until now, up to a bound, into unsorted_.
void SandboxedProcess::SandboxSupervisor::drain_output() {
  constexpr std::size_t kMaxBytes = 4096;
  std::array<char, kMaxBytes> part{};
  const ssize_t bytes = ::read(output_.get(), part.data(), part.size());
  if (bytes > 0) {
    unsorted_.append(part.data(), static_cast<std::size_t>(bytes));
  }
}

/// False where no more will come, or nothing is there.
bool SandboxedProcess::SandboxSupervisor::read_output() {
  std::array<char, kReadBytes> part;
  const ssize_t bytes = ::read(output_.get(), part.data(), part.size());
  if (bytes > 0) {
    lines_.add({part.data(), static_cast<std::size_t>(bytes)});
  }
  return bytes > 0;
}

/// Until it is to end. `is_open`: there is output to read.
void SandboxedProcess::SandboxSupervisor::serve(bool is_open) {
  const bool has_lines = is_open;
  while (!is_ending_) {
    std::array<pollfd, 2> polled{{{tasks_.fd(), POLLIN, 0}, {is_open ? output_.get() : -1, POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), -1);
    if (polled[1].revents != 0) {
      is_open = read_output();
      await_readable(tasks_.fd(), kReadPause);
    }
    tasks_.run_all();
  }
  if (has_lines) {
    finish_lines(is_open);
  }
}

void SandboxedProcess::SandboxSupervisor::finish_lines(bool is_open) {
  constexpr int kMaxReadsAfterEnd = 16;  // a descriptor that the process sent to others may go on
  for (int i = 0; i < kMaxReadsAfterEnd && is_open; ++i) {
    is_open = read_output();
  }
  lines_.finish();
}

Status SandboxedProcess::SandboxSupervisor::kill() { return kill(first_fd_ ? first_fd_ : outer_fd_); }

Status SandboxedProcess::SandboxSupervisor::kill(FileDescriptor const& process) {
  return tasks_.run([&process] { return kill_process(process); });
}

Result<int> SandboxedProcess::SandboxSupervisor::wait(milliseconds limit) {
  const bool is_forever = limit == milliseconds::max();
  const auto deadline = is_forever ? Clock::time_point::max() : Clock::now() + limit;
  const auto left = [&] { return is_forever ? milliseconds::max() : until(deadline); };
  for (FileDescriptor const* process : {&outer_fd_, &first_fd_}) {
    while (*process && !await_readable(process->get(), left())) {
      if (!is_forever && Clock::now() >= deadline) {
        return absl::DeadlineExceededError(concat("'", options_.program, "' still runs"));
      }
    }
  }
  const std::scoped_lock lock(mutex_);
  if (!exit_) {
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(outer_), &info, WEXITED) != 0 && errno == EINTR) {
    }
    exit_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    if (first_fd_) {
      // this process's only where it adopts orphans
      ::waitid(P_PIDFD, static_cast<id_t>(first_fd_.get()), &info, WEXITED | WNOHANG);
    }
  }
  return *exit_;
}

}  // namespace catena::sandbox
