// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/subprocess.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace catena::device {

namespace {

constexpr std::size_t kMaxOutputBytes = std::size_t{32} * 1024;

/// posix_spawn_file_actions_t with an owner.
class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  FileActions(FileActions const&) = delete;
  FileActions& operator=(FileActions const&) = delete;
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// posix_spawnattr_t by which a child begins a process group of its own.
class OwnGroup {
 public:
  OwnGroup() {
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes_, 0);
  }
  OwnGroup(OwnGroup const&) = delete;
  OwnGroup& operator=(OwnGroup const&) = delete;
  ~OwnGroup() { posix_spawnattr_destroy(&attributes_); }
  posix_spawnattr_t const* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

/// Waits for `child`, which leads a process group; false, and the group is gone, when `limit` has passed.
bool await_child(pid_t child, std::chrono::seconds limit, int& wait_status) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::chrono::microseconds nap{200};
  for (;;) {
    const pid_t done = waitpid(child, &wait_status, WNOHANG);
    if (done == child || (done < 0 && errno != EINTR)) {
      return true;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      kill(-child, SIGKILL);  // compilers start others, which would go on by themselves
      while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
      }
      return false;
    }
    std::this_thread::sleep_for(nap);
    nap = std::min(nap * 2, std::chrono::microseconds{5000});
  }
}

std::string read_start(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxOutputBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::create() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string pattern = (parent / "catena-XXXXXX").string();
  if (error || mkdtemp(pattern.data()) == nullptr) {
    return absl::UnavailableError(concat("cannot make a folder for the compiler under '", parent.string(),
                                         "': ", error ? error.message() : std::strerror(errno),
                                         "; set TMPDIR to a writable folder"));
  }
  return TemporaryFolder(pattern);
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
}

Status write_sources(ProgramSource const& source, std::filesystem::path const& folder) {
  for (SourceFile const& file : source.files) {
    const std::filesystem::path path = folder / file.name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    std::ofstream out(path, std::ios::binary);
    out << file.text;
    if (!out.flush()) {
      return absl::UnavailableError(concat("cannot write '", path.string(), "' for the compiler"));
    }
  }
  return absl::OkStatus();
}

Result<ProcessResult> run_process(std::vector<std::string> const& arguments, std::filesystem::path const& folder,
                                  std::chrono::seconds limit) {
  const std::string log = (folder / "output.log").string();
  FileActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(actions.get(), STDOUT_FILENO, STDERR_FILENO);

  std::vector<char*> argv;
  for (std::string const& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));  // posix_spawn does not write to them
  }
  argv.push_back(nullptr);
  const OwnGroup group;
  pid_t child = 0;
  if (const int error = posix_spawn(&child, argv[0], actions.get(), group.get(), argv.data(), environ); error != 0) {
    return absl::UnavailableError(concat("cannot start ", arguments[0], ": ", std::strerror(error)));
  }
  int wait_status = 0;
  if (!await_child(child, limit, wait_status)) {
    return absl::DeadlineExceededError(concat(arguments[0], " ran longer than ", limit.count(), " s"));
  }
  return ProcessResult{WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status),
                       read_start(log)};
}

std::string find_in_path(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    std::string candidate = concat(folder, "/", name);
    std::error_code error;
    if (std::filesystem::is_regular_file(candidate, error) && access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return {};
}

Result<std::vector<std::byte>> read_file(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    return absl::NotFoundError(concat("cannot read '", path.string(), "'"));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) {
    return absl::DataLossError(concat("cannot read all of '", path.string(), "'"));
  }
  return bytes;
}

}  // namespace catena::device
