// SPDX-License-Identifier: Apache-2.0
#include "service/state_store.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

namespace catena::service {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnerOnly = 0600;
constexpr fs::perms kOwnersFolder = fs::perms::owner_all;
constexpr std::string_view kEnding = ".json";
constexpr std::size_t kMaxFileBytes = 1 << 20;

Status failed(std::string const& path) { return absl::ErrnoToStatus(errno, concat(path, ": cannot be written")); }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  Descriptor(Descriptor const&) = delete;
  Descriptor& operator=(Descriptor const&) = delete;
  int get() const { return number_; }
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

Status write_file(std::string const& path, std::string_view text) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly));
  if (file.get() < 0 || !write_all(file.get(), text) || ::fsync(file.get()) != 0 || !file.close()) {
    return failed(path);
  }
  return absl::OkStatus();
}

}  // namespace

Result<StateStore> StateStore::open(std::string folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return absl::FailedPreconditionError(
        concat("state folder ", folder, " cannot be made", error ? concat(": ", error.message()) : ""));
  }
  if (status.st_uid != ::geteuid()) {
    return absl::FailedPreconditionError(concat("state folder ", folder, " belongs to user ", status.st_uid,
                                                "; it says with whose rights chains run, so it must be the service's"));
  }
  fs::permissions(folder, kOwnersFolder, error);
  if (error) {
    return absl::FailedPreconditionError(concat("state folder ", folder, ": ", error.message()));
  }
  return StateStore(std::move(folder));
}

std::string StateStore::path_of(std::string const& name) const { return concat(folder_, "/", name, kEnding); }

Status StateStore::sync_folder() const {
  const Descriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.get() >= 0 && ::fsync(folder.get()) == 0 ? absl::OkStatus() : failed(folder_);
}

Status StateStore::save(Applied const& applied) const {
  const std::string path = path_of(applied.name);
  const std::string temporary = path + ".new";
  Status status = write_file(temporary, to_state(applied));
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = failed(path);
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return sync_folder();
}

Status StateStore::remove(std::string const& name) const {
  const std::string path = path_of(name);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return failed(path);
  }
  return sync_folder();
}

std::vector<StateStore::Loaded> StateStore::load() const {
  std::vector<Loaded> loaded;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!path.ends_with(kEnding)) {
      continue;  // what was left of a write that did not end
    }
    std::ifstream file(path, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(file), {});
    Result<Applied> applied = text.size() > kMaxFileBytes ? absl::DataLossError("too large") : from_state(text);
    if (applied.ok() && path_of(applied->name) != path) {
      applied = absl::DataLossError(concat("names chain '", applied->name, "'"));
    }
    loaded.push_back({path, std::move(applied)});
  }
  std::sort(loaded.begin(), loaded.end(), [](Loaded const& a, Loaded const& b) { return a.path < b.path; });
  return loaded;
}

}  // namespace catena::service
