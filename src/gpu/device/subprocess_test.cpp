// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/subprocess.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace catena::device {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kRunLimit{60};

class Subprocess : public ::testing::Test {
 protected:
  std::filesystem::path const& folder() const { return folder_.path(); }
  ProcessResult run(std::vector<std::string> const& arguments) const {
    return run_process(arguments, folder(), kRunLimit).value();
  }

 private:
  TemporaryFolder folder_ = TemporaryFolder::create().value();
};

TEST_F(Subprocess, output_and_exit_code_come_back) {
  const ProcessResult result = run({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "out\nerr\n");
}

TEST_F(Subprocess, no_shell_sees_the_arguments) {
  const std::string hostile = "$(touch x); `touch y` \"'*";
  EXPECT_EQ(run({"/bin/echo", hostile}).output, hostile + "\n");
}

TEST_F(Subprocess, input_is_empty) { EXPECT_EQ(run({"/bin/cat"}).output, ""); }

TEST_F(Subprocess, long_output_is_cut) {
  const ProcessResult result =
      run({"/bin/sh", "-c",
           "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output.size(), std::size_t{32} * 1024);
}

TEST_F(Subprocess, a_program_that_a_signal_ends_shows_as_128_and_more) {
  EXPECT_EQ(run({"/bin/sh", "-c", "kill -9 $$"}).exit_code, 128 + 9);
}

TEST_F(Subprocess, a_program_that_hangs_is_killed) {
  const std::string pid_file = (folder() / "pid").string();
  pid_t child = 0;
  // until the limit is long enough for this machine to start it at all
  for (std::chrono::seconds limit{1}; child == 0 && limit < kRunLimit; limit *= 2) {
    const Status status =
        run_process({"/bin/sh", "-c", "echo $$ > " + pid_file + "; exec /bin/sleep 1000"}, folder(), limit).status();
    ASSERT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/bin/sh ran longer than"));
    std::ifstream(pid_file) >> child;
  }
  ASSERT_GT(child, 0) << "it never ran";
  EXPECT_EQ(kill(child, 0), -1) << "it still runs, or nobody waited for it";
  EXPECT_EQ(errno, ESRCH);
}

TEST_F(Subprocess, what_a_program_that_hangs_has_started_is_killed_with_it) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);  // what it leaves behind becomes a child of this process
  const std::string pid_file = (folder() / "pid").string();
  pid_t grandchild = 0;
  for (std::chrono::seconds limit{1}; grandchild == 0 && limit < kRunLimit; limit *= 2) {
    const Status status =
        run_process({"/bin/sh", "-c", "/bin/sleep 1000 & echo $! > " + pid_file + "; wait"}, folder(), limit).status();
    ASSERT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    std::ifstream(pid_file) >> grandchild;
  }
  ASSERT_GT(grandchild, 0) << "it never ran";
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  int wait_status = 0;
  pid_t done = 0;
  while (done == 0 && std::chrono::steady_clock::now() < deadline) {
    done = waitpid(grandchild, &wait_status, WNOHANG);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(done, grandchild) << "it still runs";
  EXPECT_TRUE(WIFSIGNALED(wait_status));
  if (done == 0) {
    kill(grandchild, SIGKILL);
    waitpid(grandchild, nullptr, 0);
  }
  EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

TEST_F(Subprocess, a_program_without_any_time_is_killed_too) {
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(run_process({"/bin/sleep", "1000"}, folder(), std::chrono::seconds(0)).status()));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(Subprocess, a_program_that_is_not_there_is_unavailable) {
  EXPECT_TRUE(absl::IsUnavailable(run_process({"/no/such/program"}, folder(), kRunLimit).status()));
}

TEST_F(Subprocess, sources_are_written_under_their_names) {
  ASSERT_TRUE(write_sources({{{"main.cpp", "main"}, {"a/b/c.hpp", "deep"}}, {}}, folder()).ok());
  EXPECT_EQ(run({"/bin/cat", (folder() / "main.cpp").string(), (folder() / "a/b/c.hpp").string()}).output, "maindeep");
}

TEST(TemporaryFolder, is_private_and_goes_with_its_content) {
  std::filesystem::path path;
  {
    const TemporaryFolder folder = TemporaryFolder::create().value();
    path = folder.path();
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U);
    std::filesystem::create_directories(path / "a/b");
    std::ofstream(path / "a/b/c") << "x";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

/// Another PATH as long as this lives.
class Path {
 public:
  explicit Path(std::string const& path) : before_(std::getenv("PATH")) { setenv("PATH", path.c_str(), 1); }
  Path(Path const&) = delete;
  Path& operator=(Path const&) = delete;
  ~Path() { setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST(FindInPath, takes_executables_only) {
  const TemporaryFolder folder = TemporaryFolder::create().value();
  const auto in = [&folder](const char* name) { return folder.path() / name; };
  for (const char* name : {"text", "folder", "first", "second"}) {
    std::filesystem::create_directory(in(name));
  }
  const auto put = [&in](const char* name, mode_t mode) {
    std::ofstream(in(name) / "tool") << "#!/bin/sh\n";
    ASSERT_EQ(chmod((in(name) / "tool").c_str(), mode), 0);
  };
  put("text", 0644);
  std::filesystem::create_directory(in("folder") / "tool");
  put("first", 0755);
  put("second", 0755);
  const std::string no_program =
      in("no-such-folder").string() + ":" + in("text").string() + ":" + in("folder").string();
  {
    const Path path(no_program);
    EXPECT_EQ(find_in_path("tool"), "");
  }
  {
    const Path path(no_program + ":" + in("first").string() + ":" + in("second").string());
    EXPECT_EQ(find_in_path("tool"), (in("first") / "tool").string());
    EXPECT_EQ(find_in_path("no-such-program"), "");
  }
  const Path path("");
  EXPECT_EQ(find_in_path("sh"), "");
}

}  // namespace
}  // namespace catena::device
