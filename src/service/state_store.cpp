// SPDX-License-Identifier: Apache-2.0
#include "service/state_store.hpp"

#include "base/core/replace_file.hpp"

#include <catena/core/text.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

namespace catena::service {
namespace {

namespace fs = std::filesystem;

constexpr fs::perms kOwnersFolder = fs::perms::owner_all;
constexpr std::string_view kEnding = ".json";
constexpr std::size_t kMaxFileBytes = 1 << 20;

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

Status StateStore::save(ApplyRecord const& applied) const {
  const std::string text = to_state(applied);
  return replace_file(path_of(applied.name), std::as_bytes(std::span(text)));
}

Status StateStore::remove(std::string const& name) const {
  CATENA_RETURN_IF_ERROR(history_.remove(name));  // first: it must not be left to another user's chain
  const std::string path = path_of(name);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return absl::ErrnoToStatus(errno, concat(path, ": cannot be removed"));
  }
  return sync_folder(folder_);
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
    Result<ApplyRecord> applied = text.size() > kMaxFileBytes ? absl::DataLossError("too large") : from_state(text);
    if (applied.ok() && path_of(applied->name) != path) {
      applied = absl::DataLossError(concat("names chain '", applied->name, "'"));
    }
    loaded.push_back({path, std::move(applied)});
  }
  std::sort(loaded.begin(), loaded.end(), [](Loaded const& a, Loaded const& b) { return a.path < b.path; });
  return loaded;
}

}  // namespace catena::service
