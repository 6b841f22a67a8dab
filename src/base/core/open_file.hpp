// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"

#include <catena/core/status.hpp>

#include <absl/functional/function_ref.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

/// Opens the files named by users: in a chain file, in a file named there, in an option. Each file is opened first and
/// checked afterwards, and the checked descriptor is used.
///
/// A thread acting for another user (see acts_for_another_user()) may open less than the kernel allows. The kernel lets
/// each thread of a process open the process's own files, whatever the thread's user is: /proc/self/fd/N,
/// /proc/self/maps. So such a thread opens nothing through a link of /proc, no file of /proc, /sys and the like, no
/// file without a name, and no device but /dev/null, zero, full, random and urandom.
namespace catena {

/// Whether the calling thread's user for file access differs from that of its process (see setfsuid(2)).
bool acts_for_another_user();

/// Accepted kinds of file. Values are combined by `|`.
using FileKinds = unsigned;
inline constexpr FileKinds kRegularFile = 1;
inline constexpr FileKinds kCharacterDevice = 2;
inline constexpr FileKinds kFolder = 4;
inline constexpr FileKinds kFifo = 8;
inline constexpr FileKinds kBlockDevice = 16;
/// Files that a program can read or write sequentially.
inline constexpr FileKinds kAnyStream = kRegularFile | kCharacterDevice | kFifo | kBlockDevice;

struct OpenedFile {
  FileDescriptor fd;
  struct stat status {};

  bool is_regular() const { return S_ISREG(status.st_mode); }
};

/// Opens `path` like open(2), with O_CLOEXEC and O_NOCTTY, and checks the open file. Links are followed, unless `flags`
/// say otherwise. Do not pass O_TRUNC, so a rejected file stays unchanged. Any thread.
///   system error       it cannot be opened; NotFound: it does not exist; Unavailable: with O_NONBLOCK, a FIFO without
///                      a reader
///   InvalidArgument    its kind is not in `kinds`
///   PermissionDenied   from the system; or the thread acts for another user, for whom such files are not opened
Result<OpenedFile> open_named_file(std::string const& path, int flags, FileKinds kinds, mode_t mode = 0);

/// Likewise for reading, without waiting for the writer of a FIFO.
///   NotFound           it cannot be opened
///   InvalidArgument    its kind is not in `kinds`
///   PermissionDenied   the thread acts for another user without read access to it, or without it through this process
Result<OpenedFile> open_to_read(std::string const& path, FileKinds kinds);

/// The checks of open_named_file() on an open file; `path` is for messages. Errors: InvalidArgument and
/// PermissionDenied as open_named_file().
Status check_opened(OpenedFile const& file, std::string const& path, FileKinds kinds);

/// PermissionDenied if open_named_file() would return it for any use of `path`. OK if the file does not exist. For
/// early messages only, as the file may change before it is opened. Does not disturb readers or writers of a FIFO.
Status check_name(std::string const& path);

/// Reads `file` to its end in pieces, and passes at most `max_bytes` bytes to `take`. NotFound: it cannot be read;
/// InvalidArgument: it is larger; both name `path`.
Status read_pieces(OpenedFile const& file, std::string const& path, std::uint64_t max_bytes,
                   absl::FunctionRef<void(std::span<const std::byte>)> take);

/// The bytes of `path`. Errors: as open_to_read() and read_pieces(). Any thread.
Result<std::string> read_file(std::string const& path, std::size_t max_bytes, FileKinds kinds = kRegularFile);

}  // namespace catena
