// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <thread>

#include "sandbox/descriptor.hpp"
#include "sandbox/test_support.hpp"

namespace catena::sandbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr milliseconds kLimit{60'000};

class Sandbox : public SandboxTest {};

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

TEST_F(Sandbox, exit_status_and_signal_come_back) {
  EXPECT_EQ(run({"exit", "0"}).exit_code, 0);
  EXPECT_EQ(run({"exit", "37"}).exit_code, 37);
  EXPECT_EQ(run({"die", std::to_string(SIGSEGV)}).exit_code, 128 + SIGSEGV);
  EXPECT_EQ(run({"die", std::to_string(SIGABRT)}).exit_code, 128 + SIGABRT);
}

TEST_F(Sandbox, threads_and_time_work) {
  EXPECT_EQ(run({"threads", "8"}).output, "threads 9\n");
  EXPECT_EQ(run({"clock"}).exit_code, 0);
}

TEST_F(Sandbox, a_readable_file_is_read_where_it_is_shown) {
  std::ofstream(place() / "rules") << "deny all";
  SandboxOptions options = attempt({"read", "/etc/catena/rules"});
  options.readable.push_back({place() / "rules", "/etc/catena/rules"});
  EXPECT_EQ(run_with(options).exit_code, 0);
  options.arguments = {"read", (place() / "rules").string()};
  EXPECT_EQ(run_with(options).exit_code, 1) << "it is not shown there";
  options.readable.push_back({place() / "rules", {}});
  EXPECT_EQ(run_with(options).exit_code, 0);
}

TEST_F(Sandbox, the_environment_is_what_is_passed) {
  ASSERT_EQ(::setenv("LD_LIBRARY_PATH", "/leaked", 1), 0);
  ASSERT_EQ(::setenv("CATENA_SECRET", "leaked", 1), 0);
  SandboxOptions options = attempt({"environment"});
  options.environment = {{"CATENA_NF", "firewall = 1"}};
  const Outcome outcome = run_with(options);
  ::unsetenv("LD_LIBRARY_PATH");
  ::unsetenv("CATENA_SECRET");
  EXPECT_THAT(outcome.output, HasSubstr("CATENA_NF=firewall = 1\n"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("leaked")));
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 2) << outcome.output;  // and PWD
}

TEST_F(Sandbox, it_has_the_descriptors_that_it_is_given_and_no_others) {
  const Descriptor not_given(::open("/etc/passwd", O_RDONLY));  // without O_CLOEXEC
  EXPECT_EQ(run({"fds"}).output, "0 1 2 \n");
  SandboxOptions options = attempt({"fds"});
  options.fds = {not_given.get(), 0, not_given.get()};
  EXPECT_EQ(run_with(options).output, "0 1 2 3 4 5 \n");
}

TEST_F(Sandbox, it_is_the_user_that_was_asked_for) {
  const uid_t user = test_user().value_or(::geteuid());
  const gid_t group = test_user().value_or(::getegid());
  EXPECT_EQ(run({"whoami"}).output, concat(user, " ", group, "\n"));
  Lines lines;
  const auto process = SandboxedProcess::start(attempt({"hold"}, &lines)).value();
  ASSERT_TRUE(lines.wait_for("held"));
  struct stat status {};
  ASSERT_EQ(::stat(concat("/proc/", process->pid()).c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, user) << "seen from the host";
}

TEST_F(Sandbox, memory_futex_message_and_eventfd_work_across_processes) {
  const Descriptor memory(::memfd_create("packets", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(memory.get(), 4096), 0);
  auto* words = static_cast<std::atomic<std::uint32_t>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0));
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Descriptor here(ends[0]);
  const Descriptor there(ends[1]);
  SandboxOptions options = attempt({"work"});
  options.fds = {memory.get(), there.get()};
  const auto process = SandboxedProcess::start(options).value();

  const Descriptor event(::eventfd(0, EFD_CLOEXEC));
  char byte = 'x';
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = event.get();
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  ASSERT_EQ(::sendmsg(here.get(), &message, 0), 1);
  while (words[0] == 0 && process->wait(milliseconds(1)).status().code() == absl::StatusCode::kDeadlineExceeded) {
  }
  ASSERT_EQ(words[0], 1U) << "it did not see the message";
  words[1] = 1;
  // until it has gone to sleep: a wake before that is lost
  while (::syscall(SYS_futex, &words[1], FUTEX_WAKE, 1, nullptr, nullptr, 0) == 0 &&
         process->wait(milliseconds(1)).status().code() == absl::StatusCode::kDeadlineExceeded) {
  }
  EXPECT_EQ(process->wait(kLimit).value(), 0);
  std::uint64_t count = 0;
  EXPECT_EQ(::read(event.get(), &count, sizeof(count)), 8);
  ::munmap(words, 4096);
}

TEST_F(Sandbox, output_is_cut_into_printable_lines_and_bounded) {
  Lines lines;
  auto process = SandboxedProcess::start(attempt({"write-forever"}, &lines)).value();
  ASSERT_TRUE(lines.wait_for("?[31mnonsense"));
  std::this_thread::sleep_for(milliseconds(200));
  const auto before = steady_clock::now();
  process.reset();
  EXPECT_LT(steady_clock::now() - before, std::chrono::seconds(5)) << "it writes, but it must end";
  EXPECT_LT(lines.text().size(), std::size_t{4} << 20U);
}

TEST_F(Sandbox, wait_has_a_limit_and_kill_ends_it) {
  Lines lines;
  const auto process = SandboxedProcess::start(attempt({"hold"}, &lines)).value();
  ASSERT_TRUE(lines.wait_for("held"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(process->wait(milliseconds(20)).status()));
  pollfd poll{process->pidfd(), POLLIN, 0};
  EXPECT_EQ(::poll(&poll, 1, 0), 0);
  const pid_t pid = process->pid();
  EXPECT_EQ(::kill(pid, 0), 0);
  process->kill();
  EXPECT_EQ(process->wait(kLimit).value(), 128 + SIGKILL);
  EXPECT_EQ(::poll(&poll, 1, 0), 1);
  EXPECT_EQ(process->wait(kLimit).value(), 128 + SIGKILL) << "asked again";
  EXPECT_TRUE(is_gone_soon(pid));
}

TEST_F(Sandbox, the_destructor_kills_and_reaps) {
  Lines lines;
  auto process = SandboxedProcess::start(attempt({"hold"}, &lines)).value();
  ASSERT_TRUE(lines.wait_for("held"));
  const pid_t pid = process->pid();
  process.reset();
  EXPECT_TRUE(is_gone_soon(pid));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST_F(Sandbox, it_outlives_the_thread_that_started_it) {
  Lines lines;
  std::unique_ptr<SandboxedProcess> process;
  std::thread([&] { process = SandboxedProcess::start(attempt({"hold"}, &lines)).value(); }).join();
  ASSERT_TRUE(lines.wait_for("held"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(process->wait(milliseconds(300)).status()));
}

TEST_F(Sandbox, fifty_starts_leave_nothing) {
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
      EXPECT_EQ(process->wait(kLimit).value(), 0);
    }
  }
  std::cout << "start-up: " << std::chrono::duration<double, std::milli>(spent).count() / kStarts << " ms\n";
  EXPECT_EQ(open_fds(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child or a zombie is left";
  EXPECT_EQ(errno, ECHILD);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(Sandbox, it_dies_with_the_process_that_started_it) {
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

TEST_F(Sandbox, it_runs_on_the_cpus_that_it_is_given) {
  SandboxOptions options = attempt({"cpu"});
  cpu_set_t own;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(own), &own), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE && options.cpus.empty(); ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &own)) {
      options.cpus = {cpu};
    }
  }
  EXPECT_EQ(run_with(options).output, "1\n");
  options.cpus.clear();
  EXPECT_EQ(run_with(options).output, concat(CPU_COUNT(&own), "\n"));
}

TEST_F(Sandbox, an_image_is_the_root_file_system) {
  namespace fs = std::filesystem;
  const fs::path root = place() / "image";
  for (const char* folder : {"usr/lib", "opt", "dev", "proc", "secret"}) {
    fs::create_directories(root / folder);
  }
  std::ofstream(root / "opt/marker") << "of the image";
  fs::copy_file(place() / "hostile", root / "opt/hostile");
  // what the program is linked with, and nothing else of this machine
  std::ofstream(root / "dev/not-a-device") << "x";
  SandboxOptions options = attempt({"read", "/opt/marker"});
  options.root = root;
  options.readable = {{"/usr/lib", "/usr/lib"}};
  fs::create_directory_symlink("usr/lib", root / "lib");
  if (fs::exists("/usr/lib64")) {
    fs::create_directories(root / "usr/lib64");
    options.readable.push_back({"/usr/lib64", "/usr/lib64"});
    fs::create_directory_symlink("usr/lib64", root / "lib64");
  }
  options.program = "/opt/hostile";
  EXPECT_EQ(run_with(options).exit_code, 0);
  options.arguments = {"open-read", "/usr/bin/true"};
  EXPECT_EQ(run_with(options).exit_code, 1) << "the host's";
  options.arguments = {"open-read", "/dev/not-a-device"};
  EXPECT_EQ(run_with(options).exit_code, 1) << "/dev is the sandbox's own";
  options.arguments = {"create", "/opt/new"};
  options.scratch_bytes = 4096;
  EXPECT_EQ(run_with(options).exit_code, 1);
}

TEST_F(Sandbox, a_program_that_cannot_be_executed_is_unavailable) {
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

TEST_F(Sandbox, without_bubblewrap_it_says_what_to_install) {
  SandboxOptions options = attempt({"nothing"});
  options.bwrap = "/no/such/bwrap";
  const Status status = SandboxedProcess::start(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("apt-get install bubblewrap"));
}

TEST_F(Sandbox, a_bubblewrap_that_hangs_is_given_up) {
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
TEST_F(Sandbox, without_user_namespaces_it_says_what_to_set) {
  const Descriptor report(::memfd_create("report", 0));
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

TEST(SandboxOptions, what_cannot_be_is_refused) {
  SandboxOptions good;
  good.program = "/bin/true";
  good.uid = test_user().value_or(::geteuid());
  good.gid = test_user().value_or(::getegid());
  const auto refused = [&good](auto change) {
    SandboxOptions options = good;
    change(options);
    return SandboxedProcess::start(options).status().code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(refused([](SandboxOptions& o) { o.uid = 0; }), kInvalid);
  EXPECT_EQ(refused([](SandboxOptions& o) { o.gid = 0; }), kInvalid);
  EXPECT_EQ(refused([](SandboxOptions& o) { o.program = "true"; }), kInvalid);
  EXPECT_EQ(refused([](SandboxOptions& o) { o.readable = {{"relative", {}}}; }), kInvalid);
  EXPECT_EQ(refused([](SandboxOptions& o) { o.arguments = {std::string("a\0--bind", 8)}; }), kInvalid);
  EXPECT_EQ(refused([](SandboxOptions& o) { o.environment = {{"A", std::string("a\0--bind", 8)}}; }), kInvalid);
  EXPECT_EQ(refused([](SandboxOptions& o) { o.environment = {{"A=B", "c"}}; }), kInvalid);
  EXPECT_EQ(refused([](SandboxOptions& o) { o.max_threads = 0; }), kInvalid);
  EXPECT_EQ(refused([](SandboxOptions& o) { o.memory_bytes = 0; }), kInvalid);
  EXPECT_EQ(refused([](SandboxOptions& o) { o.nice = -1; }), kInvalid);
  EXPECT_EQ(refused([](SandboxOptions& o) { o.cpus = {1 << 20}; }), kInvalid);
  if (::geteuid() == 0) {
    EXPECT_EQ(refused([](SandboxOptions& o) { o.uid = std::nullopt; }), kInvalid);
  } else {
    EXPECT_EQ(refused([](SandboxOptions& o) { o.uid = ::geteuid() + 1; }), absl::StatusCode::kPermissionDenied);
  }
}

}  // namespace
}  // namespace catena::sandbox
