// SPDX-License-Identifier: Apache-2.0
#include "base/core/open_file.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>

#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <utility>

namespace catena {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
/// How often a name is opened whose file had no name any more when it was judged: somebody replaced it just then. So
/// many that even who replaces it without a pause does not make it fail.
constexpr int kReplacedTries = 4096;

/// A descriptor, or -1: errno says why.
using Opener = int (*)(std::string const& path, int flags, mode_t mode);

/// Whether a file is in a file system that is the kernel's own interface, or in one that is not known. What is in such
/// files depends on the process that reads them, or is an order to the kernel by the process that writes.
bool is_interface_of_kernel(int fd) {
  constexpr std::array<std::uint64_t, 12> kInterfaces{
      PROC_SUPER_MAGIC, SYSFS_MAGIC,         CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
      SECURITYFS_MAGIC, ANON_INODE_FS_MAGIC, PIPEFS_MAGIC,       SOCKFS_MAGIC,        NSFS_MAGIC,    BPF_FS_MAGIC};
  struct statfs system {};
  return ::fstatfs(fd, &system) != 0 ||
         std::ranges::find(kInterfaces, static_cast<std::uint64_t>(system.f_type)) != kInterfaces.end();
}

/// /dev/null, zero, full, random and urandom, which have nothing of anybody's.
bool is_device_for_all(dev_t device) {
  constexpr unsigned kMemoryDevices = 1;
  constexpr std::array<unsigned, 5> kForAll{3, 5, 7, 8, 9};
  return ::major(device) == kMemoryDevices && std::ranges::find(kForAll, ::minor(device)) != kForAll.end();
}

FileKinds kind_of(mode_t mode) {
  return S_ISREG(mode)    ? kRegularFile
         : S_ISCHR(mode)  ? kCharacterDevice
         : S_ISDIR(mode)  ? kFolder
         : S_ISFIFO(mode) ? kFifo
         : S_ISBLK(mode)  ? kBlockDevice
                          : 0;
}

/// Empty: another user may have it.
std::string_view why_not_for_another(OpenedFile const& file) {
  mode_t const mode = file.status.st_mode;
  if (is_interface_of_kernel(file.fd.get())) {
    return "only root may name files in /proc, /sys and the like to a service";
  }
  if (!S_ISDIR(mode) && file.status.st_nlink == 0) {
    return "a file without a name, which no user of a service gets";
  }
  if (S_ISBLK(mode) || (S_ISCHR(mode) && !is_device_for_all(file.status.st_rdev))) {
    return "only root may name devices to a service";
  }
  return {};
}

Status refused(std::string const& path, std::string_view why) {
  return absl::PermissionDeniedError(concat(escaped(path), ": ", why));
}

/// A link in a folder where all may write counts only for its owner, or as the folder's owner has made it: the kernel
/// has the same rule (fs.protected_symlinks) where it follows links itself.
bool may_follow(int folder, struct stat const& link) {
  struct stat status {};
  if (::fstat(folder, &status) != 0) {
    return false;
  }
  const bool is_for_all = (status.st_mode & S_ISVTX) != 0 && (status.st_mode & S_IWOTH) != 0;
  return !is_for_all || link.st_uid == static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))) ||
         link.st_uid == status.st_uid;
}

/// Where the link `link` in `folder` leads. Empty: it is followed for nobody, and errno says why.
std::string follow(int folder, int link, struct stat const& status) {
  std::array<char, PATH_MAX> target{};
  if (is_interface_of_kernel(link)) {
    errno = ELOOP;  // as openat2() has it
    return {};
  }
  if (!may_follow(folder, status)) {
    errno = EACCES;
    return {};
  }
  const ssize_t bytes = ::readlinkat(link, "", target.data(), target.size());
  if (bytes <= 0 || static_cast<std::size_t>(bytes) == target.size()) {
    errno = bytes < 0 ? errno : ENAMETOOLONG;
    return {};
  }
  return {target.data(), static_cast<std::size_t>(bytes)};
}

FileDescriptor open_start(std::string const& path) {
  return FileDescriptor(::open(path.starts_with('/') ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/// The first part of `rest`, which loses it: `.` for the empty part after a slash at the end.
std::string take_part(std::string& rest) {
  rest.erase(0, std::min(rest.find_first_not_of('/'), rest.size()));
  const std::size_t end = std::min(rest.find('/'), rest.size());
  std::string part = rest.substr(0, end);
  rest.erase(0, end);
  return part.empty() ? "." : part;
}

/// What openat2() does with RESOLVE_NO_MAGICLINKS, for kernels and sandboxes without that call: each part of the name
/// is a step, and links are read. Stricter than the call: no link of /proc is followed at all.
int open_in_steps(std::string const& path, int flags, mode_t mode) {
  constexpr int kMaxLinks = 40;  // as Linux follows
  std::string rest = path;
  FileDescriptor folder = open_start(path);
  if (path.empty()) {
    errno = ENOENT;
  }
  for (int links = 0; folder && !path.empty();) {
    const std::string part = take_part(rest);
    FileDescriptor next(::openat(folder.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    const bool is_link = next && ::fstat(next.get(), &status) == 0 && S_ISLNK(status.st_mode);
    if (is_link && !(rest.empty() && (flags & O_NOFOLLOW) != 0)) {
      const std::string target = follow(folder.get(), next.get(), status);
      if (target.empty() || ++links > kMaxLinks) {
        errno = target.empty() ? errno : ELOOP;
        return -1;
      }
      folder = target.starts_with('/') ? open_start(target) : std::move(folder);
      rest.insert(0, target);
    } else if (rest.empty()) {
      return ::openat(folder.get(), part.c_str(), flags | O_NOFOLLOW, mode);
    } else {
      folder = std::move(next);
    }
  }
  return -1;
}

int open_without_magic(std::string const& path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how);
  // older kernels do not have the call, and some sandboxes refuse it
  return fd >= 0 || (errno != ENOSYS && errno != EPERM) ? static_cast<int>(fd) : open_in_steps(path, flags, mode);
}

int open_with_own_rights(std::string const& path, int flags, mode_t mode) { return ::open(path.c_str(), flags, mode); }

Status not_opened(std::string const& path, int flags, bool is_for_another) {
  const int error = errno;
  if (is_for_another && error == ELOOP) {
    return refused(path, "only root may name files in /proc and the like to a service, or the path has too many links");
  }
  const std::string what = concat(escaped(path), (flags & O_CREAT) != 0 ? ": cannot be created" : ": cannot be opened");
  return error == ENXIO ? absl::UnavailableError(concat(what, ": ", std::strerror(error)))
                        : absl::ErrnoToStatus(error, what);
}

}  // namespace

bool acts_for_another_user() {
  // -1 is no user and changes none; it comes back where a sandbox does not allow the call, whose thread has one user
  // only
  const auto for_files = static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1)));
  return for_files != static_cast<uid_t>(-1) && for_files != ::geteuid();
}

Result<OpenedFile> open_named_file(std::string const& path, int flags, FileKinds kinds, mode_t mode) {
  const bool is_for_another = acts_for_another_user();
  const Opener open = is_for_another ? open_without_magic : open_with_own_rights;
  const int all_flags = flags | O_CLOEXEC | ((flags & O_PATH) != 0 ? 0 : O_NOCTTY);
  OpenedFile file;
  for (int tries = 0; tries < kReplacedTries; ++tries) {
    file.fd = FileDescriptor(open(path, all_flags, mode));
    if (!file.fd) {
      return not_opened(path, flags, is_for_another);
    }
    if (::fstat(file.fd.get(), &file.status) != 0) {
      return refused(path, "its attributes cannot be read");
    }
    if (!is_for_another || file.status.st_nlink > 0) {
      break;
    }
  }
  CATENA_RETURN_IF_ERROR(check_opened(file, path, kinds));
  return file;
}

Result<OpenedFile> open_to_read(std::string const& path, FileKinds kinds) {
  Result<OpenedFile> file = open_named_file(path, O_RDONLY | O_NONBLOCK, kinds);
  const bool is_judged = absl::IsPermissionDenied(file.status()) && acts_for_another_user();
  return file.ok() || absl::IsInvalidArgument(file.status()) || is_judged
             ? std::move(file)
             : absl::NotFoundError(file.status().message());
}

Status check_opened(OpenedFile const& file, std::string const& path, FileKinds kinds) {
  if (acts_for_another_user()) {
    if (const std::string_view why = why_not_for_another(file); !why.empty()) {
      return refused(path, why);
    }
  }
  if ((kind_of(file.status.st_mode) & kinds) != 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(concat(escaped(path), kinds == kFolder        ? ": is no folder"
                                                          : kinds == kRegularFile ? ": is no regular file"
                                                                                  : ": is no file"));
}

Status check_name(std::string const& path) {
  const Status status =
      acts_for_another_user() ? open_named_file(path, O_PATH, kAnyStream | kFolder).status() : absl::OkStatus();
  return absl::IsPermissionDenied(status) ? status : absl::OkStatus();
}

Status read_pieces(OpenedFile const& file, std::string const& path, std::uint64_t max_bytes,
                   absl::FunctionRef<void(std::span<const std::byte>)> take) {
  std::array<std::byte, kPieceBytes> piece;
  auto size = static_cast<std::uint64_t>(file.status.st_size);
  for (std::uint64_t bytes = 0; std::max(size, bytes) <= max_bytes;) {
    const ssize_t got =
        ::read(file.fd.get(), piece.data(), std::min<std::uint64_t>(piece.size(), max_bytes - bytes + 1));
    if (got == 0) {
      return absl::OkStatus();
    }
    if (got < 0 && errno != EINTR) {
      return absl::NotFoundError(concat(escaped(path), ": cannot be read to its end: ", std::strerror(errno)));
    }
    bytes += static_cast<std::uint64_t>(std::max<ssize_t>(got, 0));
    size = std::max(size, bytes);
    if (got > 0 && bytes <= max_bytes) {
      take(std::span(piece).first(static_cast<std::size_t>(got)));
    }
  }
  return absl::InvalidArgumentError(concat(escaped(path), ": ", size, " bytes; such a file has at most ", max_bytes));
}

Result<std::string> read_file(std::string const& path, std::size_t max_bytes, FileKinds kinds) {
  CATENA_ASSIGN_OR_RETURN(const OpenedFile file, open_to_read(path, kinds));
  std::string text;
  CATENA_RETURN_IF_ERROR(read_pieces(file, path, max_bytes, [&text](std::span<const std::byte> piece) {
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }));
  return text;
}

}  // namespace catena
