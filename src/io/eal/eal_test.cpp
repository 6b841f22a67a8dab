// SPDX-License-Identifier: Apache-2.0
#include "io/eal/eal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_malloc.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace catena::eal {
namespace {

using ::testing::HasSubstr;

// One process, one EAL: all is in one case, in order.
TEST(Eal, is_started_once_for_all_threads_with_affinity_kept) {
  cpu_set_t cpus_before;
  ASSERT_EQ(sched_getaffinity(0, sizeof cpus_before, &cpus_before), 0);
  const std::vector<std::string> extra{"--vdev=net_null0"};
  ASSERT_TRUE(start(extra).ok());
  cpu_set_t cpus_after;
  ASSERT_EQ(sched_getaffinity(0, sizeof cpus_after, &cpus_after), 0);
  EXPECT_TRUE(CPU_EQUAL(&cpus_before, &cpus_after));

  std::vector<Status> statuses(4);
  {
    std::vector<std::jthread> threads;
    for (Status& status : statuses) {
      threads.emplace_back([&status] { status = start(); });
    }
  }
  for (Status const& status : statuses) {
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_TRUE(start(extra).ok());
  const std::vector<std::string> other{"--vdev=net_null1"};
  const Status late = start(other);
  EXPECT_EQ(late.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(late.message()), HasSubstr("--vdev=net_null1"));

  void* memory = rte_zmalloc("test", std::size_t{64} << 20, 64);
  EXPECT_NE(memory, nullptr);
  rte_free(memory);
}

/// Ends the process: 0 where DPDK starts without a word for a user, in whose /tmp another one has DPDK's folder, and
/// leaves nothing there. 77: there may be no such /tmp here.
[[noreturn]] void start_as_second_user(int said) {
  constexpr int kNoTmp = 77;
  constexpr uid_t kNobody = 65534;
  ::unsetenv("XDG_RUNTIME_DIR");
  ::unsetenv("RUNTIME_DIRECTORY");
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", "/tmp", "tmpfs", 0, "mode=1777") != 0 ||
      ::mkdir((std::filesystem::path("/tmp") / "dpdk").c_str(), 0700) != 0 || ::setuid(kNobody) != 0) {
    std::_Exit(kNoTmp);
  }
  ::dup2(said, STDOUT_FILENO);
  ::dup2(said, STDERR_FILENO);
  if (!start().ok()) {
    std::_Exit(1);
  }
  const auto left = std::distance(std::filesystem::directory_iterator("/tmp"), {});
  std::_Exit(left == 1 && std::getenv("RUNTIME_DIRECTORY") == nullptr ? 0 : 2);
}

TEST(EalOfASecondUser, starts_without_a_word) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    start_as_second_user(pipe[1]);
  }
  ::close(pipe[1]);
  std::string said;
  for (char byte = 0; ::read(pipe[0], &byte, 1) == 1;) {
    said += byte;
  }
  ::close(pipe[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "only root has a /tmp of its own for a test";
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(said, "");
}

/// Ends the process: 0 where DPDK starts although it gets no file in memory, and standard input keeps its mode. DPDK
/// then names descriptor 0 as the one of its memory.
[[noreturn]] void start_without_files() {
  constexpr rlim_t kLongest = 1000;
  constexpr mode_t kMode = 0644;
  std::FILE* const file = std::tmpfile();
  const rlimit limit{.rlim_cur = kLongest, .rlim_max = kLongest};
  struct stat after {};
  const bool ready = file != nullptr && ::dup2(::fileno(file), STDIN_FILENO) == STDIN_FILENO &&
                     ::fchmod(STDIN_FILENO, kMode) == 0 && ::setrlimit(RLIMIT_FSIZE, &limit) == 0 &&
                     std::signal(SIGXFSZ, SIG_IGN) != SIG_ERR;
  if (!ready || !start().ok() || ::fstat(STDIN_FILENO, &after) != 0) {
    std::_Exit(1);
  }
  std::_Exit((after.st_mode & ALLPERMS) == kMode ? 0 : 2);
}

TEST(EalWithoutFiles, leaves_standard_input_alone) {
  EXPECT_EXIT(start_without_files(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace catena::eal
