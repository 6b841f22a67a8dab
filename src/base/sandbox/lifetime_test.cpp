// SPDX-License-Identifier: Apache-2.0
// How sandboxed processes start, end and fail to start.
#include "base/sandbox/sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <iostream>
#include <thread>

#include "base/core/file_descriptor.hpp"
#include "base/sandbox/test_support.hpp"

namespace catena::sandbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

constexpr milliseconds kEndLimit{60'000};

class SandboxLifetime : public SandboxTest {};

/// Whether a process goes away within a second.
bool is_gone_soon(pid_t process) {
  for (const auto end = steady_clock::now() + std::chrono::seconds(1); steady_clock::now() < end;) {
    if (::kill(process, 0) != 0 && errno == ESRCH) {
      return true;
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

std::size_t open_fds() {
  std::size_t count = 0;
  for ([[maybe_unused]] auto const& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST_F(SandboxLifetime, wait_has_a_limit_and_kill_ends_it) {
  Lines lines;
  const auto process = SandboxedProcess::start(attempt({"hold"}, &lines)).value();
  ASSERT_TRUE(lines.wait_for("held"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(process->wait(milliseconds(20)).status()));
  pollfd poll{process->pidfd(), POLLIN, 0};
  EXPECT_EQ(::poll(&poll, 1, 0), 0);
  const pid_t pid = process->pid();
  EXPECT_EQ(::kill(pid, 0), 0);
  EXPECT_TRUE(process->kill().ok());
  EXPECT_EQ(process->wait(kEndLimit).value(), 128 + SIGKILL);
  EXPECT_EQ(::poll(&poll, 1, 0), 1);
  EXPECT_EQ(process->wait(kEndLimit).value(), 128 + SIGKILL) << "asked again";
  EXPECT_TRUE(is_gone_soon(pid));
}

TEST_F(SandboxLifetime, the_destructor_kills_and_reaps) {
  Lines lines;
  auto process = SandboxedProcess::start(attempt({"hold"}, &lines)).value();
  ASSERT_TRUE(lines.wait_for("held"));
  const pid_t pid = process->pid();
  process.reset();
  EXPECT_TRUE(is_gone_soon(pid));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

/// Does `work` in a thread without capabilities `lost`, as a bit mask of the first 32.
void without(std::uint32_t lost, std::function<void()> const& work) {
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
    ASSERT_EQ(::syscall(SYS_capget, &header, sets.data()), 0);
    sets[0].effective &= ~lost;
    sets[0].permitted &= ~lost;
    ASSERT_EQ(::syscall(SYS_capset, &header, sets.data()), 0);
    work();
  }).join();
}

/// As that of a service that acts for a user: root ends the processes of others by a capability.
TEST_F(SandboxLifetime, a_thread_without_capabilities_ends_it) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root has capabilities to give up";
  }
  Lines lines;
  auto process = SandboxedProcess::start(attempt({"hold"}, &lines)).value();
  ASSERT_TRUE(lines.wait_for("held"));
  const pid_t pid = process->pid();
  without(~0U, [&] {
    EXPECT_TRUE(process->kill().ok());
    EXPECT_EQ(process->wait(kEndLimit).value_or(-1), 128 + SIGKILL);
  });
  process = SandboxedProcess::start(attempt({"hold"})).value();
  without(~0U, [&] { process.reset(); });
  EXPECT_TRUE(is_gone_soon(pid));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST_F(SandboxLifetime, one_that_cannot_be_killed_is_an_error_and_left_behind) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root starts processes of others";
  }
  Lines lines;
  std::unique_ptr<SandboxedProcess> process;
  // it may become another user, and may then not send that user's processes a signal
  without(1U << CAP_KILL, [&] { process = SandboxedProcess::start(attempt({"hold"}, &lines)).value(); });
  ASSERT_TRUE(lines.wait_for("held"));
  const pid_t pid = process->pid();
  const Status status = process->kill();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Operation not permitted"));
  process.reset();
  EXPECT_EQ(::kill(pid, SIGKILL), 0) << "it is there, and this thread may";
  EXPECT_GT(::waitpid(-1, nullptr, 0), 0);
}

TEST_F(SandboxLifetime, it_outlives_the_thread_that_started_it) {
  Lines lines;
  std::unique_ptr<SandboxedProcess> process;
  std::thread([&] { process = SandboxedProcess::start(attempt({"hold"}, &lines)).value(); }).join();
  ASSERT_TRUE(lines.wait_for("held"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(process->wait(milliseconds(300)).status()));
}

TEST_F(SandboxLifetime, fifty_starts_leave_nothing) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);  // what it leaves behind becomes a child of this process
  run({"nothing"});
  const std::size_t before = open_fds();
  auto spent = steady_clock::duration::zero();
  constexpr int kStarts = 50;
  for (int i = 0; i < kStarts; ++i) {
    const auto begin = steady_clock::now();
    auto process = SandboxedProcess::start(attempt({i % 2 == 0 ? "nothing" : "hold"})).value();
    spent += steady_clock::now() - begin;
    if (i % 2 == 0) {
      EXPECT_EQ(process->wait(kEndLimit).value(), 0);
    }
  }
  std::cout << "start-up: " << std::chrono::duration<double, std::milli>(spent).count() / kStarts << " ms\n";
  EXPECT_EQ(open_fds(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child or a zombie is left";
  EXPECT_EQ(errno, ECHILD);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(SandboxLifetime, it_dies_with_the_process_that_started_it) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    Lines lines;
    auto process = SandboxedProcess::start(attempt({"hold"}, &lines));
    pid_t pid = process.ok() && lines.wait_for("held") ? (*process)->pid() : 0;
    [[maybe_unused]] const ssize_t written = ::write(ends[1], &pid, sizeof(pid));
    ::pause();
  }
  pid_t pid = 0;
  ASSERT_EQ(::read(ends[0], &pid, sizeof(pid)), static_cast<ssize_t>(sizeof(pid)));
  ASSERT_GT(pid, 0);
  EXPECT_EQ(::kill(pid, 0), 0);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(is_gone_soon(pid));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(SandboxLifetime, it_dies_with_the_process_that_was_starting_it) {
  // a FIFO that nobody reads holds the start up, where bubblewrap has made the namespaces and the program is not
  // executed
  const std::filesystem::path group = place() / "group";
  ASSERT_TRUE(std::filesystem::create_directory(group));
  const std::filesystem::path members = group / "cgroup.procs";
  ASSERT_EQ(::mkfifo(members.c_str(), 0600), 0);
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    SandboxOptions options = attempt({"hold"});
    options.cgroups = {group};
    SandboxedProcess::start(options).status().IgnoreError();
    ::_exit(0);
  }
  const auto is_held_up = [&] {
    for (auto const& task : std::filesystem::directory_iterator(concat("/proc/", parent, "/task"))) {
      std::string call;
      std::ifstream(task.path() / "wchan") >> call;
      if (call.starts_with("wait_for_partner") || call.starts_with("fifo_open")) {
        return true;
      }
    }
    return false;
  };
  for (const auto end = steady_clock::now() + kEndLimit; !is_held_up() && steady_clock::now() < end;) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(is_held_up());
  ::kill(parent, SIGKILL);
  // this process adopts what the dead one leaves
  pid_t reaped = 0;
  for (const auto end = steady_clock::now() + kEndLimit; reaped >= 0 && steady_clock::now() < end;) {
    reaped = ::waitpid(-1, nullptr, WNOHANG);
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(reaped, -1) << "a child is left";
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(SandboxLifetime, a_program_that_cannot_be_executed_is_unavailable) {
  SandboxOptions options = attempt({});
  options.program = "/catena/missing";
  const Status missing = SandboxedProcess::start(options).status();
  EXPECT_TRUE(absl::IsUnavailable(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr("bwrap: execvp /catena/missing: No such file"));
  options.readable = {{place() / "not-there", "/catena/hostile"}};
  const Status unreadable = SandboxedProcess::start(options).status();
  EXPECT_TRUE(absl::IsUnavailable(unreadable)) << unreadable;
  EXPECT_THAT(std::string(unreadable.message()), HasSubstr("bwrap: Can't find source path"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST_F(SandboxLifetime, without_bubblewrap_it_says_what_to_install) {
  SandboxOptions options = attempt({"nothing"});
  options.bwrap = "/no/such/bwrap";
  const Status status = SandboxedProcess::start(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("apt-get install bubblewrap"));
}

TEST_F(SandboxLifetime, a_bubblewrap_that_hangs_is_given_up) {
  const std::filesystem::path script = place() / "bwrap";
  std::ofstream(script) << "#!/bin/sh\nexec sleep 100\n";
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  SandboxOptions options = attempt({"nothing"});
  options.bwrap = script.string();
  options.start_limit = milliseconds(100);
  EXPECT_TRUE(absl::IsDeadlineExceeded(SandboxedProcess::start(options).status()));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

/// In a user namespace where no other one can be made, as on a machine where they are off.
TEST_F(SandboxLifetime, without_user_namespaces_it_says_what_to_set) {
  const FileDescriptor report(::memfd_create("report", 0));
  const pid_t child = ::fork();
  if (child == 0) {
    const uid_t user = ::geteuid();
    const gid_t group = ::getegid();
    if (::unshare(CLONE_NEWUSER) != 0) {
      ::_exit(2);
    }
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << concat("1000 ", user, " 1");
    std::ofstream("/proc/self/gid_map") << concat("1000 ", group, " 1");
    std::ofstream limit("/proc/sys/user/max_user_namespaces");
    if (!(limit << "0" << std::flush)) {
      ::_exit(2);
    }
    SandboxOptions options = attempt({"nothing"});
    options.uid = options.gid = std::nullopt;
    const Status status = SandboxedProcess::start(options).status();
    const std::string text = status.ToString();
    ::_exit(::write(report.get(), text.data(), text.size()) > 0 && absl::IsUnavailable(status) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::array<char, 1024> text{};
  ASSERT_GE(::pread(report.get(), text.data(), text.size() - 1, 0), 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) {
    GTEST_SKIP() << "this user cannot turn user namespaces off for himself";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0) << text.data();
  EXPECT_THAT(text.data(), HasSubstr("sysctl -w user.max_user_namespaces="));
  EXPECT_THAT(text.data(), HasSubstr("bwrap: "));
}

}  // namespace
}  // namespace catena::sandbox
