// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/guest_program.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "apps/catena/program_file.hpp"
#include "base/sandbox/proc.hpp"

namespace catena::cli {
namespace {

constexpr std::array kPassedOn{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr int kNotFound = 127;  // as a shell has it
constexpr int kBySignal = 128;

/// The parent of a process; 0 where it is not known.
pid_t parent_of(pid_t pid) {
  const auto stat = sandbox::read_process_stat(pid);
  return stat ? stat->parent : 0;
}

int exit_status_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : kBySignal + WTERMSIG(status); }

/// Whether a key of the terminal (Ctrl-C) sent it: then all processes of this one's group have it already.
bool is_of_terminal(int signal, int code) { return code == SI_KERNEL && (signal == SIGINT || signal == SIGQUIT); }

/// Sends `signal` to all processes whose parent is this one.
void signal_children(int signal) {
  std::error_code error;
  for (auto const& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size() && parent_of(pid) == ::getpid()) {
      ::kill(pid, signal);
    }
  }
}

sigset_t passed_on() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kPassedOn) {
    sigaddset(&signals, signal);
  }
  return signals;
}

/// "NAME=VALUE" texts, each ended by a zero byte. False: the other end was closed without any.
bool read_environment(int from) {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t count = 0; (count = ::read(from, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::string variable = text.c_str() + at;
    const std::size_t equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
    at += variable.size() + 1;
  }
  return !text.empty();
}

[[noreturn]] void execute(std::vector<std::string> const& words) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  std::vector<char*> arguments;
  for (std::string const& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const std::string why = concat("catena: ", words[0], ": ", std::strerror(errno), "\n");
  static_cast<void>(::write(STDERR_FILENO, why.data(), why.size()));
  std::_Exit(kNotFound);
}

/// The process between: the parent of all that the program leaves behind.
[[noreturn]] void stand_between(std::vector<std::string> const& words, int start, pid_t parent) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent || !read_environment(start)) {
    std::_Exit(kNotFound);
  }
  sigset_t signals = passed_on();
  sigaddset(&signals, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  const pid_t program = ::fork();
  if (program == 0) {
    execute(words);
  }
  int result = kNotFound;
  int last_signal = 0;
  for (bool has_ended = program < 0; true;) {
    for (;;) {
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, WNOHANG);
      if (ended < 0) {
        std::_Exit(result);
      }
      if (ended == 0) {
        break;
      }
      if (ended == program) {
        has_ended = true;
        result = exit_status_of(status);
      }
    }
    if (has_ended && last_signal != 0) {
      signal_children(last_signal);
    }
    siginfo_t signal{};
    if (::sigwaitinfo(&signals, &signal) > 0 && signal.si_signo != SIGCHLD) {
      last_signal = signal.si_signo == SIGINT || signal.si_signo == SIGTERM ? signal.si_signo : last_signal;
      const bool has_it = is_of_terminal(signal.si_signo, signal.si_code) && ::getpgid(program) == ::getpgrp();
      if (!has_ended && !has_it) {
        ::kill(program, signal.si_signo);
      }
    }
  }
}

}  // namespace

Result<GuestProgram> GuestProgram::prepare(std::vector<std::string> const& words) {
  CATENA_RETURN_IF_ERROR(check_loads_libraries(words[0]));
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError(concat("pipe: ", std::strerror(errno)));
  }
  const FileDescriptor read_end(pipe[0]);
  FileDescriptor write_end(pipe[1]);
  sigset_t signals = passed_on();
  sigaddset(&signals, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  FileDescriptor signal_fd(::signalfd(-1, &signals, SFD_CLOEXEC));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    write_end.close();
    stand_between(words, read_end.get(), parent);
  }
  if (child < 0 || !signal_fd) {
    return absl::UnavailableError(concat(words[0], ": ", std::strerror(errno)));
  }
  return GuestProgram(child, std::move(write_end), std::move(signal_fd));
}

bool GuestProgram::has(pid_t pid) const {
  constexpr int kMaxDepth = 64;
  for (int depth = 0; pid > 1 && depth < kMaxDepth; ++depth) {
    if (pid == pid_) {
      return true;
    }
    pid = parent_of(pid);
  }
  return false;
}

Status GuestProgram::start(Environment const& environment) {
  std::string text;
  for (auto const& [name, value] : environment) {
    text += concat(name, "=", value);
    text += '\0';
  }
  const bool is_sent = ::write(start_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return start_.close() && is_sent ? absl::OkStatus() : absl::UnavailableError("the program's process is gone");
}

int GuestProgram::wait() {
  for (;;) {
    signalfd_siginfo signal{};
    if (::read(signals_.get(), &signal, sizeof signal) == sizeof signal && signal.ssi_signo != SIGCHLD &&
        !is_of_terminal(static_cast<int>(signal.ssi_signo), signal.ssi_code)) {
      ::kill(pid_, static_cast<int>(signal.ssi_signo));
    }
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != 0) {
      return exit_status_of(status);
    }
  }
}

}  // namespace catena::cli
