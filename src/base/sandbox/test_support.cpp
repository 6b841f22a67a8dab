// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/test_support.hpp"

#include "base/sandbox/reserved_user.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace catena::sandbox {
namespace {

constexpr std::chrono::seconds kProcessLimit{60};

/// What a child that runs `work` and what it executes write and end with.
template <typename Work>
Outcome run_child(Work const& work) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    work();
    ::_exit(126);
  }
  ::close(ends[1]);
  Outcome outcome;
  std::array<char, 4096> part{};
  for (ssize_t bytes = 0; (bytes = ::read(ends[0], part.data(), part.size())) > 0;) {
    outcome.output.append(part.data(), static_cast<std::size_t>(bytes));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

void execute(std::vector<std::string> command) {
  std::vector<char*> argv;
  for (std::string& argument : command) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
}

/// What bubblewrap says where it cannot make a sandbox; found without the code under test.
std::string why_there_is_no_sandbox() {
  const Outcome outcome = run_child([] {
    if (const auto user = test_user()) {
      if (::setgroups(0, nullptr) != 0 || ::setresgid(*user, *user, *user) != 0 ||
          ::setresuid(*user, *user, *user) != 0) {
        return;
      }
    }
    execute({"/usr/bin/bwrap", "--unshare-all", "--unshare-user", "--ro-bind", "/", "/", "--proc", "/proc", "--dev",
             "/dev", "/bin/true"});
  });
  return outcome.exit_code == 0 ? "" : concat("bwrap ends with ", outcome.exit_code, ": ", outcome.output);
}

}  // namespace

std::optional<uid_t> test_user() { return ::geteuid() == 0 ? std::optional(kNobody) : std::nullopt; }

Workplace::Workplace() {
  std::string pattern = (std::filesystem::temp_directory_path() / "catena-sandbox-XXXXXX").string();
  EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
  EXPECT_EQ(::chmod(folder_.c_str(), 0755), 0);
  std::filesystem::copy_file(CATENA_HOSTILE, folder_ / "hostile");
}

Workplace::~Workplace() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Lines::add(std::string_view line) {
  const std::scoped_lock lock(mutex_);
  text_ += concat(line, "\n");
}

std::string Lines::text() const {
  const std::scoped_lock lock(mutex_);
  return text_;
}

bool Lines::wait_for(std::string const& line) const {
  const auto deadline = std::chrono::steady_clock::now() + kProcessLimit;
  while (text().find(line + "\n") == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void SandboxTest::SetUp() {
  static const std::string kWhyNot = why_there_is_no_sandbox();
  if (!kWhyNot.empty()) {
    GTEST_SKIP() << "no sandbox on this machine: " << kWhyNot;
  }
}

SandboxOptions SandboxTest::attempt(std::vector<std::string> arguments, Lines* lines) const {
  SandboxOptions options;
  options.program = "/catena/hostile";
  options.readable = {{place_ / "hostile", "/catena/hostile"}};
  options.arguments = std::move(arguments);
  options.uid = test_user();
  options.gid = test_user();
  if (lines != nullptr) {
    options.on_line = [lines](std::string_view line) { lines->add(line); };
  }
  return options;
}

Outcome SandboxTest::run_with(SandboxOptions options) const {
  Lines lines;
  options.on_line = [&lines](std::string_view line) { lines.add(line); };
  Outcome outcome;
  {
    auto process = SandboxedProcess::start(std::move(options));
    EXPECT_TRUE(process.ok()) << process.status();
    if (process.ok()) {
      outcome.exit_code = (*process)->wait(kProcessLimit).value_or(-1);
    }
  }
  outcome.output = lines.text();
  return outcome;
}

Outcome SandboxTest::run_outside(std::vector<std::string> const& arguments) const {
  return run_child([&] {
    // without rights to do so it cannot mount anything either
    if (::unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC) == 0) {
      ::mount("", "/", "", MS_REC | MS_PRIVATE, nullptr);
    }
    std::vector<std::string> command = {(place_ / "hostile").string()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    execute(command);
  });
}

}  // namespace catena::sandbox
