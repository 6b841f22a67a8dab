// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/control_group.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/sandbox/proc.hpp"

namespace catena::sandbox {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

/// Names are kPrefix PID "-" START "-" COUNT, of the process that made the group.
constexpr std::string_view kPrefix = "catena-nf-";
constexpr mode_t kFolderMode = 0755;
constexpr milliseconds kRemovalLimit{2000};
constexpr milliseconds kRemovalPause{2};

Status failed(fs::path const& path, int error) {
  return absl::FailedPreconditionError(concat(path.string(), ": ", std::strerror(error)));
}

FileDescriptor open_file(fs::path const& path, int flags) {
  return FileDescriptor(::open(path.c_str(), flags | O_CLOEXEC));
}

bool write_text(FileDescriptor const& file, std::string_view text) {
  return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// 0, or the number of what went wrong.
int write_file(fs::path const& path, std::string_view text) {
  const FileDescriptor file = open_file(path, O_WRONLY);
  return write_text(file, text) ? 0 : errno;
}

Status to_status(fs::path const& path, int error) { return error == 0 ? absl::OkStatus() : failed(path, error); }

/// Of an open file of the kernel, as it is now.
std::string read_now(FileDescriptor const& file) {
  std::array<char, 1024> text{};
  const ssize_t bytes = ::pread(file.get(), text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

/// The number after `key` in lines of KEY NUMBER; 0 where it is not there.
std::uint64_t number_of(std::string_view key, std::string const& lines) {
  const std::string start = concat("\n", key, " ");
  const std::string text = "\n" + lines;
  const std::size_t at = text.find(start);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + start.size(), nullptr, 10);
}

std::string own_prefix() {
  const std::optional<ProcessStat> self = read_process_stat(::getpid());
  return concat(kPrefix, ::getpid(), "-", self ? self->started : 0, "-");
}

/// Whether the process that made the group `name` is no more; false for what is not of that form.
bool is_left(std::string const& name) {
  int pid = 0;
  unsigned long long started = 0;
  unsigned count = 0;
  int length = 0;
  if (!name.starts_with(kPrefix) ||
      std::sscanf(name.c_str() + kPrefix.size(), "%d-%llu-%u%n", &pid, &started, &count, &length) != 3 ||
      static_cast<std::size_t>(length) + kPrefix.size() != name.size()) {
    return false;
  }
  const std::optional<ProcessStat> stat = read_process_stat(pid);
  return !stat || stat->started != started;
}

/// The kernel ends their processes with the service, and refuses to remove a group that has one yet.
void remove_left(fs::path const& folder) {
  std::vector<fs::path> left;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_left(entry->path().filename().string())) {
      left.push_back(entry->path());
    }
  }
  for (fs::path const& group : left) {
    ::rmdir(group.c_str());
  }
}

void remove_group(fs::path const& folder) {
  const auto deadline = std::chrono::steady_clock::now() + kRemovalLimit;
  while (::rmdir(folder.c_str()) != 0 && errno == EBUSY && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kRemovalPause);
  }
}

/// Where a group has processes it cannot limit groups below it: puts them into one of these.
Status move_processes(fs::path const& from) {
  const fs::path leaf = from / kCallersLeaf;
  if (::mkdir(leaf.c_str(), kFolderMode) != 0 && errno != EEXIST) {
    return failed(leaf, errno);
  }
  std::ifstream processes(from / "cgroup.procs");
  for (pid_t process = 0; processes >> process;) {
    if (const int error = write_file(leaf / "cgroup.procs", concat(process)); error != 0 && error != ESRCH) {
      return failed(leaf, error);
    }
  }
  return absl::OkStatus();
}

/// Lets groups below `places` have limits; v2 only.
Status enable_limits(GroupPlaces const& places) {
  constexpr int kMaxTries = 8;  // others may start processes there meanwhile
  const fs::path file = places.memory / "cgroup.subtree_control";
  const std::string_view wanted = places.pids ? "+memory +pids" : "+memory";
  int error = write_file(file, wanted);
  for (int i = 0; error == EBUSY && i < kMaxTries; ++i) {
    CATENA_RETURN_IF_ERROR(move_processes(places.memory));
    error = write_file(file, wanted);
  }
  return to_status(file, error);
}

}  // namespace

Result<std::unique_ptr<ControlGroup>> ControlGroup::create(GroupLimits const& limits) {
  CATENA_ASSIGN_OR_RETURN(const GroupPlaces places, find_group_places());
  if (places.is_v2) {
    CATENA_RETURN_IF_ERROR(enable_limits(places));
  }
  std::unique_ptr<ControlGroup> group(new ControlGroup(places.is_v2));
  CATENA_RETURN_IF_ERROR(group->make(places, limits));
  return group;
}

Status ControlGroup::make(GroupPlaces const& places, GroupLimits const& limits) {
  static std::atomic<unsigned> count{0};
  const std::string name = concat(own_prefix(), count.fetch_add(1));
  std::vector<fs::path> parents = {places.memory};
  if (places.pids && *places.pids != places.memory) {
    parents.push_back(*places.pids);
  }
  for (fs::path const& parent : parents) {
    remove_left(parent);
    if (::mkdir((parent / name).c_str(), kFolderMode) != 0) {
      return failed(parent / name, errno);
    }
    folders_.push_back(parent / name);
  }
  CATENA_RETURN_IF_ERROR(limit_memory(folders_[0], limits.memory_bytes));
  if (!places.pids) {
    return absl::OkStatus();
  }
  const fs::path tasks = folders_.back() / "pids.max";
  return to_status(tasks, write_file(tasks, concat(limits.tasks)));
}

Status ControlGroup::limit_memory(fs::path const& folder, std::uint64_t bytes) {
  const fs::path limit = folder / (is_v2_ ? "memory.max" : "memory.limit_in_bytes");
  memory_ = open_file(limit, O_WRONLY);
  if (!write_text(memory_, concat(bytes))) {
    return failed(limit, errno);
  }
  memory_bytes_ = bytes;
  // What does not fit shall not go to swap instead. These files are not there where swap is not counted.
  if (is_v2_) {
    events_ = open_file(folder / "memory.events", O_RDONLY);
    write_file(folder / "memory.swap.max", "0");
    // bubblewrap's process goes with the program
    return to_status(folder, write_file(folder / "memory.oom.group", "1"));
  }
  events_ = open_file(folder / "memory.oom_control", O_RDONLY);
  swapped_ = open_file(folder / "memory.memsw.limit_in_bytes", O_WRONLY);
  peak_ = open_file(folder / (swapped_ ? "memory.memsw.max_usage_in_bytes" : "memory.max_usage_in_bytes"), O_RDONLY);
  return !swapped_ || write_text(swapped_, concat(bytes)) ? absl::OkStatus() : failed(folder, errno);
}

ControlGroup::~ControlGroup() {
  for (fs::path const& folder : folders_) {
    remove_group(folder);
  }
}

Status ControlGroup::allow_more(std::uint64_t bytes) {
  const std::string limit = concat(memory_bytes_ + bytes);
  // v1: that of both together is never below that of memory
  if ((swapped_ && !write_text(swapped_, limit)) || !write_text(memory_, limit)) {
    return absl::UnavailableError(concat("the limit of a control group cannot be raised: ", std::strerror(errno)));
  }
  memory_bytes_ += bytes;
  return absl::OkStatus();
}

bool ControlGroup::has_killed() const {
  constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20U;  // what may not have fitted
  const std::string events = read_now(events_);
  // A process may also be ended because the machine, or a group above, has no memory. v1 counts how often a limit was
  // reached, but not with every kernel.
  const bool is_full = is_v2_ ? number_of("oom", events) > 0
                              : std::strtoull(read_now(peak_).c_str(), nullptr, 10) + kHugePage >= memory_bytes_;
  return is_full && number_of("oom_kill", events) > 0;
}

}  // namespace catena::sandbox
