// SPDX-License-Identifier: Apache-2.0
#include "base/core/open_file.hpp"
#include "base/sandbox/sandbox.hpp"

#include <catena/core/text.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <utility>

namespace catena::sandbox {
namespace {

namespace fs = std::filesystem;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

/// bubblewrap takes 9,000 arguments, and at most three are of one name.
constexpr std::size_t kMaxEntries = 2800;

/// Whether something is shown below the folder `path`.
bool has_targets_below(fs::path const& path, std::vector<ReadOnlyBind> const& binds) {
  return std::ranges::any_of(binds, [&path](ReadOnlyBind const& bind) {
    return bind.shown_at().lexically_normal().string().starts_with(path.string() + "/");
  });
}

/// Whether the sandbox makes `target` itself.
bool is_own(fs::path const& target, std::vector<ReadOnlyBind> const& binds) {
  constexpr std::array kOwn{"/proc", "/sys", "/dev", "/tmp"};
  return std::ranges::find(kOwn, target.string()) != kOwn.end() ||
         std::ranges::any_of(binds, [&](auto const& bind) { return bind.shown_at() == target; });
}

/// The text of a link, or nothing.
fs::path read_link(int folder, const char* name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t bytes = ::readlinkat(folder, name, target.data(), target.size());
  return bytes > 0 ? fs::path(std::string(target.data(), static_cast<std::size_t>(bytes))) : fs::path();
}

Status unreadable(fs::path const& folder) {
  return absl::FailedPreconditionError(concat("root '", folder.string(), "': ", std::strerror(errno)));
}

/// What is in `folder`, which is `from` on the host, at `to`. A folder below which something else is shown is made
/// anew, as nothing can be put into the image's own.
Status add_folder(FileDescriptor folder, fs::path const& from, fs::path const& to,
                  std::vector<ReadOnlyBind> const& binds, Image& image) {
  const Folder open(::fdopendir(folder.get()));
  if (open == nullptr) {
    return unreadable(from);
  }
  const int fd = folder.release();
  for (dirent const* entry = ::readdir(open.get()); entry != nullptr; entry = ::readdir(open.get())) {
    const std::string name = entry->d_name;
    const fs::path target = to / name;
    struct stat status {};
    if (name == "." || name == ".." || is_own(target, binds) ||
        ::fstatat(fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    if (image.entries.size() == kMaxEntries) {
      return absl::InvalidArgumentError(
          concat("root '", from.string(), "': more than ", kMaxEntries, " names to pass to a sandbox"));
    }
    if (S_ISLNK(status.st_mode)) {
      image.entries.push_back({Image::Kind::kLink, read_link(fd, name.c_str()), target});
    } else if (S_ISDIR(status.st_mode) && has_targets_below(target, binds)) {
      image.entries.push_back({Image::Kind::kMade, {}, target});
      FileDescriptor below(::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      CATENA_RETURN_IF_ERROR(below ? add_folder(std::move(below), from / name, target, binds, image)
                                   : unreadable(from / name));
    } else {
      image.entries.push_back({Image::Kind::kShown, from / name, target});
    }
  }
  return absl::OkStatus();
}

}  // namespace

Result<Image> read_image(fs::path const& folder, std::vector<ReadOnlyBind> const& binds) {
  if (!folder.is_absolute()) {
    return absl::InvalidArgumentError(concat("'", folder.string(), "' is not an absolute path"));
  }
  Result<OpenedFile> opened = open_named_file(folder.string(), O_RDONLY | O_DIRECTORY, kFolder);
  if (!opened.ok()) {
    return Status(
        absl::IsPermissionDenied(opened.status()) ? opened.status().code() : absl::StatusCode::kFailedPrecondition,
        concat("root: ", std::string(opened.status().message())));
  }
  Image image;
  CATENA_RETURN_IF_ERROR(add_folder(std::move(opened->fd), folder, "/", binds, image));
  return image;
}

}  // namespace catena::sandbox
