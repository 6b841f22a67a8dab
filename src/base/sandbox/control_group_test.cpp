// SPDX-License-Identifier: Apache-2.0
// Groups of the kernel this test runs on, below the test's own: v1 or v2, whichever it has.
#include "base/sandbox/control_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <catena/core/text.hpp>

#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <sstream>

#include "base/core/file_descriptor.hpp"
#include "base/sandbox/limits.hpp"
#include "base/sandbox/test_support.hpp"

namespace catena::sandbox {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20U;
constexpr int kKilled = 128 + SIGKILL;

std::string text_of(fs::path const& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

FileDescriptor shared_memory(std::uint64_t bytes) {
  FileDescriptor memory(::memfd_create("shared", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(memory.get(), static_cast<off_t>(bytes)), 0);
  return memory;
}

/// What a child that runs `work` says, which it ends or waits with.
template <typename Work>
std::pair<pid_t, std::string> child_that_says(Work const& work) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const std::string text = work();
    if (::write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      ::_exit(1);
    }
    ::close(ends[1]);
    ::pause();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 4096> part{};
  for (ssize_t bytes = 0; (bytes = ::read(ends[0], part.data(), part.size())) > 0;) {
    said.append(part.data(), static_cast<std::size_t>(bytes));
  }
  ::close(ends[0]);
  return {child, said};
}

void end_child(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

class Groups : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (const auto places = find_group_places(); !places.ok() && !IsSkipped()) {
      GTEST_SKIP() << "this user cannot make control groups: " << places.status().message();
    }
  }

  static std::unique_ptr<ControlGroup> group_of(std::uint64_t memory_bytes, std::uint32_t tasks = 64) {
    return ControlGroup::create({.memory_bytes = memory_bytes, .tasks = tasks}).value();
  }

  Outcome run_in(ControlGroup const& group, SandboxOptions options) const {
    options.cgroups = group.folders();
    return run_with(std::move(options));
  }
};

TEST_F(Groups, a_process_is_in_its_group_which_is_gone_afterwards) {
  Lines lines;
  SandboxOptions options = attempt({"hold"}, &lines);
  std::vector<fs::path> folders;
  {
    const auto group = group_of(64 * kMebibyte);
    folders = group->folders();
    ASSERT_FALSE(folders.empty());
    options.cgroups = folders;
    const auto process = SandboxedProcess::start(options).value();
    for (fs::path const& folder : folders) {
      EXPECT_THAT(text_of(concat("/proc/", process->pid(), "/cgroup")), HasSubstr(folder.filename().string()));
      EXPECT_THAT("\n" + text_of(folder / "cgroup.procs"), HasSubstr(concat("\n", process->pid(), "\n")));
    }
  }
  for (fs::path const& folder : folders) {
    EXPECT_FALSE(fs::exists(folder)) << folder;
  }
}

TEST_F(Groups, one_that_touches_too_much_shared_memory_is_ended_and_others_live) {
  const FileDescriptor memory = shared_memory(256 * kMebibyte);
  SandboxOptions options = attempt({"touch-shared", "256"});
  options.fds = {memory.get()};
  Lines lines;
  SandboxOptions sibling_options = attempt({"hold"}, &lines);
  const auto sibling_group = group_of(64 * kMebibyte);
  sibling_options.cgroups = sibling_group->folders();
  const auto sibling = SandboxedProcess::start(sibling_options).value();
  ASSERT_TRUE(lines.wait_for("held"));

  const auto small = group_of(64 * kMebibyte);
  EXPECT_EQ(run_in(*small, options).exit_code, kKilled);
  EXPECT_TRUE(small->has_killed());
  EXPECT_FALSE(sibling_group->has_killed());
  EXPECT_TRUE(absl::IsDeadlineExceeded(sibling->wait(std::chrono::milliseconds(20)).status()));
}

TEST_F(Groups, memory_that_is_allowed_later_may_be_touched) {
  const FileDescriptor memory = shared_memory(128 * kMebibyte);
  SandboxOptions options = attempt({"touch-shared", "128"});
  options.fds = {memory.get()};
  const auto group = group_of(64 * kMebibyte);
  ASSERT_EQ(group->allow_more(128 * kMebibyte), absl::OkStatus());
  EXPECT_EQ(group->memory_bytes(), 192 * kMebibyte);
  EXPECT_EQ(run_in(*group, options).exit_code, 0);
  EXPECT_FALSE(group->has_killed());
}

/// What a resource limit counts as private memory is what can be written now, not what was.
TEST_F(Groups, memory_that_no_resource_limit_counts_is_counted) {
  SandboxOptions options = attempt({"allocate-and-lock", "512"});
  options.memory_bytes = 64 * kMebibyte;
  EXPECT_EQ(run_with(options).exit_code, 0) << "without a group";
  const auto group = ControlGroup::create(group_limits(options)).value();
  EXPECT_EQ(run_in(*group, options).exit_code, kKilled);
  EXPECT_TRUE(group->has_killed());
}

TEST_F(Groups, one_that_uses_all_that_it_may_is_not_ended) {
  const FileDescriptor memory = shared_memory(256 * kMebibyte);
  const fs::path rules = place() / "rules";
  std::ofstream(rules) << std::string(64 * kMebibyte, 'x');
  const FileDescriptor copied(::open(rules.c_str(), O_RDONLY | O_CLOEXEC));
  SandboxOptions options = attempt({"use-all", "240", "256", "60", (fs::path("/tmp") / "file").string()});
  options.memory_bytes = 256 * kMebibyte;
  options.fds = {memory.get()};
  options.scratch_bytes = 64 * kMebibyte;
  options.readable.push_back({rules, "/rules", copied.get()});
  const auto group = ControlGroup::create(group_limits(options)).value();
  const Outcome outcome = run_in(*group, options);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_FALSE(group->has_killed());
}

TEST_F(Groups, threads_are_bounded_where_groups_count_them) {
  if (!find_group_places()->pids) {
    GTEST_SKIP() << "no controller of pids here";
  }
  const auto group = group_of(64 * kMebibyte, 5);
  EXPECT_EQ(run_in(*group, attempt({"threads", "8"})).output, "refused: Resource temporarily unavailable\nthreads 4\n");
}

TEST_F(Groups, what_a_killed_service_left_is_removed_and_what_others_have_stays) {
  const auto create = [] {
    std::string folders;
    for (fs::path const& folder : group_of(64 * kMebibyte).release()->folders()) {
      folders += folder.string() + "\n";
    }
    return folders;
  };
  const auto [killed, its_folders] = child_that_says(create);
  const auto [living, others_folders] = child_that_says(create);
  end_child(killed);
  const auto own = group_of(64 * kMebibyte);
  std::istringstream left(its_folders);
  for (std::string folder; std::getline(left, folder);) {
    EXPECT_FALSE(fs::exists(folder)) << folder;
  }
  std::istringstream stays(others_folders);
  std::size_t count = 0;
  for (std::string folder; std::getline(stays, folder); ++count) {
    EXPECT_TRUE(fs::exists(folder)) << folder;
  }
  EXPECT_EQ(count, own->folders().size());
  end_child(living);
  group_of(64 * kMebibyte);
  EXPECT_FALSE(fs::exists(others_folders.substr(0, others_folders.find('\n'))));
}

TEST_F(Groups, the_number_of_a_dead_service_that_another_process_has_keeps_nothing) {
  const fs::path memory = find_group_places()->memory;
  const fs::path left = memory / concat("catena-nf-", ::getpid(), "-1-0");  // it started at another time
  std::error_code error;
  group_of(64 * kMebibyte);  // so that there may be groups
  ASSERT_TRUE(fs::create_directory(left, error)) << error.message();
  const fs::path foreign = memory / concat("catena-nf-test-", ::getpid());
  ASSERT_TRUE(fs::create_directory(foreign, error)) << error.message();
  group_of(64 * kMebibyte);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::remove(foreign, error)) << error.message();
}

TEST_F(Groups, a_hundred_leave_nothing) {
  const auto living = group_of(64 * kMebibyte);
  const fs::path own = living->folders()[0];
  const auto own_groups = [&own] {  // others, of other processes, come and go
    const std::string text = own.filename().string();
    const std::string prefix = text.substr(0, text.rfind('-') + 1);
    return std::count_if(fs::directory_iterator(own.parent_path()), fs::directory_iterator(),
                         [&prefix](auto const& entry) { return entry.path().filename().string().starts_with(prefix); });
  };
  EXPECT_EQ(own_groups(), 1);
  for (int i = 0; i < 100; ++i) {
    group_of(64 * kMebibyte);
  }
  EXPECT_EQ(own_groups(), 1);
}

/// In a mount namespace where they are not mounted, as in most containers.
TEST(NoGroups, it_is_said_where_none_can_be_made) {
  const auto [child, said] = child_that_says([]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::umount2("/sys/fs/cgroup", MNT_DETACH) != 0) {
      return "skip";
    }
    return ControlGroup::create({.memory_bytes = kMebibyte, .tasks = 1}).status().ToString();
  });
  end_child(child);
  if (said == "skip") {
    GTEST_SKIP() << "this user cannot hide control groups";
  }
  EXPECT_THAT(said, HasSubstr("UNAVAILABLE"));
  EXPECT_THAT(said, HasSubstr("no hierarchy with memory limits is mounted"));
}

}  // namespace
}  // namespace catena::sandbox
