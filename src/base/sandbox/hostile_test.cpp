// SPDX-License-Identifier: Apache-2.0
// What a program in a sandbox must not be able to do. Each attempt is made outside, too, where it shall succeed: a test
// whose attempt fails everywhere shows nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iostream>

#include "base/core/file_descriptor.hpp"
#include "base/ipc/unix_address.hpp"
#include "base/sandbox/test_support.hpp"

namespace catena::sandbox {
namespace {

using ::testing::HasSubstr;

constexpr int kDone = 0;
constexpr int kRefused = 1;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

/// A file in the sandbox's own space.
std::string scratch(std::string const& name) { return std::filesystem::path("/tmp") / name; }

class Hostile : public SandboxTest {
 protected:
  using Arguments = std::vector<std::string>;

  /// Outside it works for whoever runs the tests.
  void expect_refused(Arguments const& arguments) const {
    const Outcome outside = run_outside(arguments);
    EXPECT_EQ(outside.exit_code, kDone) << arguments[0] << " outside: " << outside.output;
    expect_refused_inside(arguments);
  }

  /// Outside it works on some machines, for root. Says where it did not.
  void expect_refused_to_root(Arguments const& arguments, const char* why = "Operation not permitted") const {
    const Outcome outside = run_outside(arguments);
    if (outside.exit_code != kDone) {
      std::cout << "refused outside, too: " << arguments[0] << ": " << outside.output;
    }
    expect_refused_inside(arguments, why);
  }

  void expect_refused_inside(Arguments const& arguments, const char* why = "refused") const {
    const Outcome inside = run(arguments);
    EXPECT_EQ(inside.exit_code, kRefused) << arguments[0] << ": " << inside.output;
    EXPECT_THAT(inside.output, HasSubstr(why)) << arguments[0];
  }
};

TEST_F(Hostile, no_device_is_there) {
  for (const char* device : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse"}) {
    expect_refused_inside({"open-read", device}, "No such file");
  }
  expect_refused_to_root({"open-read", "/dev/loop-control"}, "No such file");
}

TEST_F(Hostile, a_device_that_it_is_given_takes_the_given_requests_alone) {
  constexpr char kDevice[] = "/dev/net/tun";
  if (::access(kDevice, R_OK | W_OK) != 0) {
    GTEST_SKIP() << "no " << kDevice << " here";
  }
  constexpr std::uint64_t kByKind = 0xFF00;
  SandboxOptions options = attempt({"request", kDevice, std::to_string(TUNGETFEATURES)});
  options.devices = {kDevice};
  options.requests = {{kByKind, TUNGETFEATURES & kByKind}};
  EXPECT_EQ(run_with(options).exit_code, kDone);
  options.requests = {{kByKind, 'F' << 8U}};
  EXPECT_THAT(run_with(options).output, HasSubstr("refused: Operation not permitted"));
  options.devices.clear();
  EXPECT_THAT(run_with(options).output, HasSubstr("refused: Operation not permitted")) << "opened to be written";
  options.scratch_bytes = kMiB;
  EXPECT_THAT(run_with(options).output, HasSubstr("refused: No such file"));
}

TEST_F(Hostile, no_device_can_be_made) {
  SandboxOptions options = attempt({"mknod", scratch("mem")});
  options.scratch_bytes = kMiB;
  EXPECT_THAT(run_with(options).output, HasSubstr("refused: Operation not permitted"));
  expect_refused_to_root({"mknod", (place() / "mem").string()});
}

TEST_F(Hostile, no_socket_can_be_opened) {
  for (const int family : {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK}) {
    for (const int type : {SOCK_DGRAM}) {
      expect_refused({"socket", std::to_string(family), std::to_string(type)});
    }
  }
  expect_refused_to_root({"socket", std::to_string(AF_PACKET), std::to_string(SOCK_RAW)});
  expect_refused_to_root({"socket", std::to_string(AF_VSOCK), std::to_string(SOCK_STREAM)});
  expect_refused({"pair", std::to_string(SOCK_DGRAM)});
  EXPECT_EQ(run({"pair", std::to_string(SOCK_STREAM | SOCK_CLOEXEC)}).exit_code, kDone);
}

TEST_F(Hostile, where_it_may_listen_it_reaches_nobody) {
  const auto run_listener = [this](Arguments const& arguments) {
    SandboxOptions options = attempt(arguments);
    options.listens = true;
    options.scratch_bytes = kMiB;
    return run_with(options).exit_code;
  };
  expect_refused({"listen", "@name"});
  for (std::string const& name : {std::string("@name"), scratch("socket")}) {
    EXPECT_EQ(run_listener({"listen", name}), kDone) << name;
  }
  const std::string shown = (place() / "socket").string();
  EXPECT_EQ(run_listener({"listen", shown}), kRefused) << "it has no place there";
  EXPECT_EQ(run_listener({"connect", shown}), kRefused);
  for (const int family : {AF_INET, AF_INET6, AF_NETLINK}) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
      EXPECT_EQ(run_listener({"socket", std::to_string(family), std::to_string(type)}), kRefused) << family;
    }
  }
  for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
    EXPECT_EQ(run_listener({"socket", std::to_string(AF_UNIX), std::to_string(type)}), kRefused) << type;
  }
}

TEST_F(Hostile, a_socket_of_the_host_is_out_of_reach_even_where_it_is_shown) {
  const std::filesystem::path folder = place() / "run";
  std::filesystem::create_directory(folder);
  const auto listen_at = [](std::filesystem::path const& path, int type) {
    FileDescriptor socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    const sockaddr_un address = *ipc::unix_address(path.string());
    EXPECT_EQ(::bind(socket.get(), ipc::raw(address), sizeof(address)), 0);
    EXPECT_EQ(::chmod(path.c_str(), 0777), 0);
    if (type == SOCK_STREAM) {
      EXPECT_EQ(::listen(socket.get(), 4), 0);
    }
    return socket;
  };
  const FileDescriptor control = listen_at(folder / "control.sock", SOCK_STREAM);
  const FileDescriptor log = listen_at(folder / "log.sock", SOCK_DGRAM);
  for (Arguments const& arguments : {Arguments{"connect", (folder / "control.sock").string()},
                                     Arguments{"send-by-pair", (folder / "log.sock").string()}}) {
    expect_refused(arguments);
    SandboxOptions shown = attempt(arguments);
    shown.readable.push_back({folder, {}});
    EXPECT_EQ(run_with(shown).exit_code, kRefused) << arguments[0];
  }
}

TEST_F(Hostile, other_processes_are_out_of_reach) {
  Lines lines;
  const auto sibling = SandboxedProcess::start(attempt({"hold"}, &lines)).value();
  ASSERT_TRUE(lines.wait_for("held"));
  static const char kSecret[] = "secret";
  for (const pid_t process : {::getpid(), sibling->pid()}) {
    const std::string number = std::to_string(process);
    expect_refused({"signal", number});
    expect_refused_to_root({"process-vm-readv", number, concat(reinterpret_cast<std::uintptr_t>(kSecret))});
    expect_refused_inside({"open-read", concat("/proc/", number, "/mem")}, "No such file");
    expect_refused_inside({"read", concat("/proc/", number, "/maps")}, "No such file");
    expect_refused({"read", concat("/proc/", number, "/maps")});
    expect_refused({"pidfd", number});
    expect_refused_to_root({"kcmp", number});
  }
  expect_refused({"ptrace", std::to_string(sibling->pid())});
  expect_refused({"traceme"});
}

/// The first process of the sandbox is its parent, and has its user: it has nothing that the program has not.
TEST_F(Hostile, its_own_parent_is_no_way_out) {
  expect_refused_inside({"ptrace", "1"}, "Operation not permitted");
  expect_refused_inside({"process-vm-readv", "1", "0x400000"}, "Operation not permitted");
  expect_refused_inside({"read", "/proc/1/root/etc/passwd"});
  expect_refused_inside({"read", "/proc/1/environ"});
  expect_refused_inside({"open-write", "/proc/1/mem"});
}

TEST_F(Hostile, files_of_the_host_are_out_of_reach) {
  const std::filesystem::path secret = place() / "secret";
  std::ofstream(secret) << "secret";
  expect_refused({"read", secret.string()});
  expect_refused({"read", "/etc/passwd"});
  expect_refused({"read", "/sys/kernel/mm/transparent_hugepage/enabled"});
  // a file that the test's user alone may read stays so where it is shown
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  SandboxOptions options = attempt({"read", "/catena/folder/secret"});
  options.readable.push_back({place().path(), "/catena/folder"});
  const Outcome outcome = run_with(options);
  if (::geteuid() == 0) {
    EXPECT_THAT(outcome.output, HasSubstr("Permission denied"));
  } else {
    EXPECT_EQ(outcome.exit_code, kDone) << "it runs as this very user";
  }
}

TEST_F(Hostile, nothing_can_be_written) {
  const std::filesystem::path folder = place() / "data";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "rules") << "x";
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  ASSERT_EQ(::chmod((folder / "rules").c_str(), 0666), 0);
  const auto in = [&folder](const char* name) { return (folder / name).string(); };
  for (const std::uint64_t scratch : {std::uint64_t{0}, kMiB}) {
    for (Arguments const& arguments :
         {Arguments{"open-write", in("rules")}, Arguments{"create", in("new")}, Arguments{"mkdir", in("newer")},
          Arguments{"chmod", in("rules")}, Arguments{"unlink", in("rules")}}) {
      SandboxOptions options = attempt(arguments);
      options.readable.push_back({folder, {}});
      options.scratch_bytes = scratch;
      EXPECT_EQ(run_with(options).exit_code, kRefused) << arguments[0];
    }
    for (const char* path : {"/new", "/usr/new", "/dev/new", "/dev/shm/new", "/catena/new", "/proc/sys/kernel/new"}) {
      SandboxOptions options = attempt({"create", path});
      options.scratch_bytes = scratch;
      EXPECT_EQ(run_with(options).exit_code, kRefused) << path;
    }
  }
  expect_refused_inside({"create", scratch("new")});
  for (Arguments const& arguments :
       {Arguments{"open-write", in("rules")}, Arguments{"create", in("new")}, Arguments{"mkdir", in("newer")},
        Arguments{"chmod", in("rules")}, Arguments{"unlink", in("rules")}}) {
    EXPECT_EQ(run_outside(arguments).exit_code, kDone) << arguments[0] << " outside";
  }
}

TEST_F(Hostile, scratch_space_is_bounded) {
  SandboxOptions options = attempt({"write-much", scratch("file"), "4"});
  options.scratch_bytes = 8 * kMiB;
  EXPECT_EQ(run_with(options).exit_code, kDone);
  options.scratch_bytes = 2 * kMiB;
  EXPECT_THAT(run_with(options).output, HasSubstr("after 2 MiB refused: File too large"));
  options.arguments = {"write-many", scratch("file"), "4"};
  EXPECT_THAT(run_with(options).output, HasSubstr("refused: No space left"));
}

TEST_F(Hostile, memory_is_bounded) {
  SandboxOptions options = attempt({"allocate", "100"});
  options.memory_bytes = 256 * kMiB;
  EXPECT_EQ(run_with(options).exit_code, kDone);
  options.memory_bytes = 64 * kMiB;
  EXPECT_THAT(run_with(options).output, HasSubstr("refused: Cannot allocate memory"));
  // mapped to be read it does not count as private memory, but as addresses
  options.arguments = {"reserve", "1000"};
  EXPECT_EQ(run_with(options).exit_code, kDone);
  options.arguments = {"reserve", "3000"};
  EXPECT_THAT(run_with(options).output, HasSubstr("refused: Cannot allocate memory"));
}

TEST_F(Hostile, addresses_are_unlimited_where_it_is_said_and_memory_is_not) {
  SandboxOptions options = attempt({"reserve", "3000"});
  options.memory_bytes = 64 * kMiB;
  options.limits_addresses = false;
  EXPECT_EQ(run_with(options).exit_code, kDone);
  options.arguments = {"allocate", "100"};
  EXPECT_THAT(run_with(options).output, HasSubstr("refused: Cannot allocate memory"));
}

TEST_F(Hostile, memory_that_would_not_count_is_refused) {
  expect_refused({"allocate-shared", "1"});
  expect_refused({"allocate-growing", "1"});
  expect_refused({"memfd"});
  expect_refused({"shmget"});
}

TEST_F(Hostile, threads_are_bounded_and_there_is_no_other_process) {
  SandboxOptions options = attempt({"threads", "100"});
  options.max_threads = 5;
  const Outcome outcome = run_with(options);
  EXPECT_THAT(outcome.output, HasSubstr("threads 5\n"));
  EXPECT_EQ(outcome.exit_code, kRefused);
  EXPECT_EQ(run_outside({"threads", "100"}).exit_code, kDone);
  expect_refused({"fork"});
  expect_refused({"clone3"});
  expect_refused_inside({"vfork"});
}

TEST_F(Hostile, where_programs_may_be_started_they_get_no_namespaces) {
  const Arguments program = {"start-program", "/usr/bin/true"};
  expect_refused(program);
  for (Arguments const& arguments : {Arguments{"fork"}, program}) {
    SandboxOptions options = attempt(arguments);
    options.starts_programs = true;
    EXPECT_EQ(run_with(options).exit_code, kDone) << arguments[0];
  }
  for (const char* name : {"unshare", "clone-user", "clone3"}) {
    SandboxOptions options = attempt({name});
    options.starts_programs = true;
    EXPECT_EQ(run_with(options).exit_code, kRefused) << name;
  }
}

/// The limit counts the threads of one sandbox, not those of its user.
TEST_F(Hostile, a_sibling_does_not_use_up_the_threads) {
  Lines lines;
  std::vector<std::unique_ptr<SandboxedProcess>> siblings;
  for (int i = 0; i < 4; ++i) {
    siblings.push_back(SandboxedProcess::start(attempt({"hold"}, &lines)).value());
  }
  SandboxOptions options = attempt({"threads", "2"});
  options.max_threads = 3;
  EXPECT_EQ(run_with(options).output, "threads 3\n");
}

TEST_F(Hostile, no_namespace_and_no_mount_can_be_made) {
  expect_refused({"unshare"});
  expect_refused({"clone-user"});
  const std::string folder = place().path().string();
  for (Arguments const& arguments :
       {Arguments{"setns"}, Arguments{"mount", folder}, Arguments{"remount", "/proc"}, Arguments{"umount", "/proc"},
        Arguments{"fsopen"}, Arguments{"pivot_root", folder}, Arguments{"chroot", folder}, Arguments{"sethostname"}}) {
    expect_refused_to_root(arguments);
  }
  expect_refused_inside({"mount", "/tmp"}, "Operation not permitted");
  expect_refused_inside({"remount", "/usr"}, "Operation not permitted");
  expect_refused_inside({"chroot", "/tmp"}, "Operation not permitted");
}

TEST_F(Hostile, what_reaches_deep_into_the_kernel_is_refused) {
  for (const char* name : {"io_uring", "bpf", "perf", "keyctl", "add_key", "userfaultfd", "setgroups", "init_module",
                           "kexec", "tiocsti", "dumpable", "affinity"}) {
    expect_refused_to_root({name});
  }
  expect_refused({"personality"});
  expect_refused({"dumpable"});
  expect_refused({"affinity"});
  expect_refused_to_root({"setuid", "0"});
  expect_refused_to_root({"setuid", "1"});
}

#ifdef __x86_64__
TEST_F(Hostile, calls_of_another_architecture_kill) {
  EXPECT_EQ(run({"i386"}).exit_code, 128 + SIGSYS);
  const Outcome outside = run_outside({"i386"});
  if (outside.exit_code != kDone) {
    std::cout << "this kernel has no calls of i386\n";
  }
}
#endif

TEST_F(Hostile, no_library_of_a_gpu_is_in_its_memory) {
  for (const char* name : {"libcuda", "libOpenCL", "libnvrtc", "libpocl"}) {
    EXPECT_EQ(run({"maps", name}).exit_code, kRefused) << name;
  }
  EXPECT_EQ(run({"maps", "libc.so"}).exit_code, kDone) << "it would not see any library";
}

}  // namespace
}  // namespace catena::sandbox
