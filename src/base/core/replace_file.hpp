// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/open_file.hpp"

#include <catena/core/status.hpp>
#include <catena/core/text.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

/// Atomic replacement of files: a file is complete or does not exist. Errors: the system's, with the file. Any thread.
namespace catena {

/// Writes all of `bytes`. False, with errno set, if that fails.
inline bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      errno = written == 0 ? EIO : errno;
      return false;
    }
  }
  return true;
}

/// A new or removed name is on the disk only after its folder is synced.
inline Status sync_folder(std::string const& folder) {
  CATENA_ASSIGN_OR_RETURN(const OpenedFile opened, open_named_file(folder, O_RDONLY | O_DIRECTORY, kFolder));
  return ::fsync(opened.fd.get()) == 0 ? absl::OkStatus()
                                       : absl::ErrnoToStatus(errno, concat(folder, ": cannot be brought to the disk"));
}

/// Atomically replaces the content of the file `path` by `bytes`, accessible to its owner only. After a crash at any
/// time, the file has the old bytes or the new ones. Returns when bytes and name are on the disk. Writes to `path`.new
/// first, which only one process may do at a time, and which is removed after an error.
inline Status replace_file(std::string const& path, std::span<const std::byte> bytes) {
  const std::string temporary = path + ".new";
  Result<OpenedFile> file =
      open_named_file(temporary, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOFOLLOW, kRegularFile, S_IRUSR | S_IWUSR);
  const int fd = file.ok() ? file->fd.get() : -1;
  const bool is_written =
      file.ok() && ::ftruncate(fd, 0) == 0 && write_all(fd, bytes) && ::fsync(fd) == 0 && file->fd.close();
  if (!is_written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return file.ok() ? absl::ErrnoToStatus(error, concat(is_written ? path : temporary, ": cannot be written"))
                     : Status(file.status().code(),
                              concat(path, ": cannot be written: ", std::string(file.status().message())));
  }
  return sync_folder(std::filesystem::path(path).parent_path().string());
}

}  // namespace catena
