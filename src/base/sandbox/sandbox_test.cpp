// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/core/file_descriptor.hpp"
#include "base/sandbox/seccomp_filter.hpp"
#include "base/sandbox/test_support.hpp"

namespace catena::sandbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr milliseconds kLimit{60'000};

class Sandbox : public SandboxTest {};

TEST_F(Sandbox, exit_status_and_signal_come_back) {
  EXPECT_EQ(run({"exit", "0"}).exit_code, 0);
  EXPECT_EQ(run({"exit", "37"}).exit_code, 37);
  EXPECT_EQ(run({"die", std::to_string(SIGSEGV)}).exit_code, 128 + SIGSEGV);
  EXPECT_EQ(run({"die", std::to_string(SIGABRT)}).exit_code, 128 + SIGABRT);
}

TEST_F(Sandbox, starts_where_limits_are_lower_than_its_own) {
  // as below systemd's LimitCORE=0; a process cannot raise such a limit again
  const auto run_below = [this] {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::_exit(run({"exit", "37"}).exit_code);
  };
  EXPECT_EXIT(run_below(), ::testing::ExitedWithCode(37), "");
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

TEST_F(Sandbox, a_file_that_its_user_may_not_read_is_shown_from_a_descriptor_and_stays_as_it_was) {
  const std::string rules = place() / "rules";
  std::ofstream(rules) << "deny all";
  ASSERT_EQ(::chmod(rules.c_str(), 0), 0);
  SandboxOptions options = attempt({"read", rules});
  const FileDescriptor open(::open(rules.c_str(), O_RDONLY | O_CLOEXEC));
  if (!open) {
    GTEST_SKIP() << "only root can open it, too";
  }
  options.readable.push_back({rules, {}});
  EXPECT_EQ(run_with(options).exit_code, 1);
  options.readable.back().fd = open.get();
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(run_with(options).exit_code, 0) << "also where it was shown before";
  }
  options.arguments = {"open-write", rules};
  EXPECT_EQ(run_with(options).exit_code, 1);
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
  const FileDescriptor not_given(::open("/etc/passwd", O_RDONLY));  // without O_CLOEXEC
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
  const FileDescriptor memory(::memfd_create("packets", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(memory.get(), 4096), 0);
  auto* words = static_cast<std::atomic<std::uint32_t>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0));
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const FileDescriptor here(ends[0]);
  const FileDescriptor there(ends[1]);
  SandboxOptions options = attempt({"work"});
  options.fds = {memory.get(), there.get()};
  const auto process = SandboxedProcess::start(options).value();

  const FileDescriptor event(::eventfd(0, EFD_CLOEXEC));
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
  ASSERT_TRUE(lines.wait_for("\\x1b[31mnonsense"));
  std::this_thread::sleep_for(milliseconds(200));
  const auto before = steady_clock::now();
  process.reset();
  EXPECT_LT(steady_clock::now() - before, std::chrono::seconds(5)) << "it writes, but it must end";
  EXPECT_LT(lines.text().size(), std::size_t{4} << 20U);
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

TEST_F(Sandbox, it_runs_in_the_control_groups_that_it_is_given) {
  namespace fs = std::filesystem;
  // cgroup v2, or one hierarchy of v1
  const fs::path parent = fs::exists("/sys/fs/cgroup/cgroup.procs") ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids";
  const std::string name = concat("catena-sandbox-test-", ::getpid());
  std::error_code error;
  if (!fs::create_directory(parent / name, error)) {
    GTEST_SKIP() << "this user cannot make a control group in " << parent << ": " << error.message();
  }
  Lines lines;
  SandboxOptions options = attempt({"hold"}, &lines);
  options.cgroups = {parent / name};
  {
    const auto process = SandboxedProcess::start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    if (process.ok()) {
      std::ostringstream groups;
      groups << std::ifstream(concat("/proc/", (*process)->pid(), "/cgroup")).rdbuf();
      EXPECT_THAT(groups.str(), HasSubstr(name));
    }
  }
  options.cgroups = {parent / (name + "-missing")};
  const Status missing = SandboxedProcess::start(options).status();
  EXPECT_TRUE(absl::IsUnavailable(missing)) << missing;
  EXPECT_TRUE(fs::remove(parent / name, error)) << error.message();
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
  options.readable = {{"/usr/lib", "/usr/lib"}};
  fs::create_directory_symlink("usr/lib", root / "lib");
  if (fs::exists("/usr/lib64")) {
    fs::create_directories(root / "usr/lib64");
    options.readable.push_back({"/usr/lib64", "/usr/lib64"});
    fs::create_directory_symlink("usr/lib64", root / "lib64");
  }
  options.program = "/opt/hostile";
  options.root = read_image(root, options.readable).value();
  EXPECT_EQ(run_with(options).exit_code, 0);
  options.arguments = {"open-read", "/usr/bin/true"};
  EXPECT_EQ(run_with(options).exit_code, 1) << "the host's";
  options.arguments = {"open-read", "/dev/not-a-device"};
  EXPECT_EQ(run_with(options).exit_code, 1) << "/dev is the sandbox's own";
  options.arguments = {"create", "/opt/new"};
  options.scratch_bytes = 4096;
  EXPECT_EQ(run_with(options).exit_code, 1);
}

TEST(SeccompFilter, is_changed_by_nobody_while_bubblewrap_reads_it) {
  for (const bool can_write : {false, true}) {
    const FileDescriptor filter = make_seccomp_filter({.can_write = can_write}).value();
    EXPECT_EQ(::fcntl(filter.get(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    struct stat status {};
    ASSERT_EQ(::fstat(filter.get(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    EXPECT_GT(status.st_size, 0);
    EXPECT_EQ(::lseek(filter.get(), 0, SEEK_CUR), 0) << "it is read from its start";
  }
}

TEST_F(Sandbox, an_image_with_more_names_than_it_can_be_told_is_refused_before_it_is_read_whole) {
  const std::filesystem::path root = place() / "image";
  std::filesystem::create_directories(root);
  for (int i = 0; i < 3000; ++i) {
    std::ofstream(root / concat("name", i)) << "";
  }
  const Status status = read_image(root, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("more than 2800 names"));
}

TEST(Image, is_read_with_the_rights_of_the_thread_that_asks) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "root alone can act for others";
  }
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "catena-image-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/name-of-a-secret") << "x";
  fs::create_directory_symlink("usr/bin", folder + "/bin");
  const Image image = read_image(folder, {}).value();
  EXPECT_EQ(image.entries.size(), 2U);
  for (Image::Entry const& entry : image.entries) {
    const bool is_link = entry.to == "/bin";
    EXPECT_EQ(entry.kind, is_link ? Image::Kind::kLink : Image::Kind::kShown);
    EXPECT_EQ(entry.from, is_link ? fs::path("usr/bin") : fs::path(folder) / "name-of-a-secret");
  }
  std::thread([&folder] {
    constexpr uid_t kAnn = 64'001;
    ::setfsuid(kAnn);
    EXPECT_TRUE(absl::IsPermissionDenied(read_image(folder, {}).status()));
    EXPECT_TRUE(absl::IsPermissionDenied(read_image("/proc/self/cwd", {}).status()));
    EXPECT_TRUE(absl::IsPermissionDenied(read_image("/proc/self", {}).status()));
  }).join();
  EXPECT_TRUE(absl::IsFailedPrecondition(read_image(folder + "/none", {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(read_image("none", {}).status()));
  fs::remove_all(folder);
}

TEST(SandboxOptions, what_is_granted_is_added_to_what_was_given) {
  SandboxOptions options;
  options.readable = {{"/opt", {}}};
  options.memory_bytes = 100;
  options.max_threads = 4;
  const SandboxOptions before = options;
  grant({}, options);
  EXPECT_EQ(options.devices.size() + options.requests.size() + options.environment.size(), 0U);
  EXPECT_EQ(options.scratch_bytes, 0U);
  EXPECT_TRUE(!options.starts_programs && options.limits_addresses && !options.listens);
  EXPECT_EQ(options.memory_bytes, before.memory_bytes);
  for (int i = 1; i <= 2; ++i) {
    grant({.devices = {"/dev/a"},
           .requests = {{1, 1}},
           .files = {{"/etc/b", "/etc/c"}},
           .environment = {{"D", "e"}},
           .scratch_bytes = 5,
           .memory_bytes = 6,
           .threads = 7,
           .starts_programs = true,
           .reserves_addresses = true,
           .listens = true},
          options);
    EXPECT_EQ(options.devices, std::vector<std::filesystem::path>(static_cast<std::size_t>(i), "/dev/a"));
    EXPECT_EQ(options.requests.size(), static_cast<std::size_t>(i));
    EXPECT_EQ(options.environment.size(), static_cast<std::size_t>(i));
    ASSERT_EQ(options.readable.size(), 1U + static_cast<std::size_t>(i));
    EXPECT_EQ(options.readable.back().source, "/etc/b");
    EXPECT_EQ(options.readable.back().shown_at(), "/etc/c");
    EXPECT_EQ(options.scratch_bytes, 5U * static_cast<unsigned>(i));
    EXPECT_EQ(options.memory_bytes, before.memory_bytes + 6U * static_cast<unsigned>(i));
    EXPECT_EQ(options.max_threads, before.max_threads + 7U * static_cast<unsigned>(i));
    EXPECT_TRUE(options.starts_programs && !options.limits_addresses && options.listens);
  }
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
