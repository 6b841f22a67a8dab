// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file_descriptor.hpp"

#include <catena/core/status.hpp>

#include <absl/functional/function_ref.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

/// Files that users name: in a chain file, in a file that it names, in an option. All of them are opened here, first
/// opened and then judged, and the descriptor that was judged is the one that is used.
///
/// A thread that acts for another user (see acts_for_another_user()) opens less than the kernel allows it. The kernel
/// lets each thread of a process open what the process has, whatever its user is: /proc/self/fd/N, /proc/self/maps. So
/// such a thread opens nothing through a link of /proc, no file of /proc, /sys and their like, no memory without a
/// name, and no device but /dev/null and those beside it.
namespace catena {

/// Whether the calling thread has another user for files than its process (see setfsuid(2)).
bool acts_for_another_user();

/// What a name may stand for. Values are combined by `|`.
using FileKinds = unsigned;
inline constexpr FileKinds kRegularFile = 1;
inline constexpr FileKinds kCharacterDevice = 2;
inline constexpr FileKinds kFolder = 4;
inline constexpr FileKinds kFifo = 8;
inline constexpr FileKinds kBlockDevice = 16;
/// What a program can read or write from one end to the other.
inline constexpr FileKinds kAnyStream = kRegularFile | kCharacterDevice | kFifo | kBlockDevice;

struct OpenedFile {
  FileDescriptor fd;
  struct stat status {};

  bool is_regular() const { return S_ISREG(status.st_mode); }
};

/// Opens `path` as open(2) does, with O_CLOEXEC and O_NOCTTY, and judges what is open. Links are followed, unless
/// `flags` say otherwise. Do not give O_TRUNC: what is judged wrong stays as it was. Any thread.
///   what the system says   it cannot be opened; NotFound: it does not exist; Unavailable: with O_NONBLOCK, a FIFO that
///                          nobody reads
///   InvalidArgument        it is none of `kinds`
///   PermissionDenied       the system's word, too; or the thread acts for another user, and opens no such file for him
Result<OpenedFile> open_named_file(std::string const& path, int flags, FileKinds kinds, mode_t mode = 0);

/// The same for reading, without waiting for the writer of a FIFO.
///   NotFound           it cannot be opened
///   InvalidArgument    it is none of `kinds`
///   PermissionDenied   the thread acts for another user, who may not read it, or not through this process
Result<OpenedFile> open_to_read(std::string const& path, FileKinds kinds);

/// What open_named_file() asks of a file that is open; `path` is for messages. Errors: InvalidArgument and
/// PermissionDenied as open_named_file().
Status check_opened(OpenedFile const& file, std::string const& path, FileKinds kinds);

/// PermissionDenied where open_named_file() would say so whatever `path` is opened for; OK, too, where there is no such
/// file. For early messages: what is there now need not be there when it is opened. Disturbs no reader or writer of a
/// FIFO.
Status check_name(std::string const& path);

/// Reads `file` to its end, in pieces, and gives no byte more than `max_bytes`. NotFound: it cannot be read;
/// InvalidArgument: there is more; both name `path`.
Status read_pieces(OpenedFile const& file, std::string const& path, std::uint64_t max_bytes,
                   absl::FunctionRef<void(std::span<const std::byte>)> take);

/// The bytes of `path`. Errors: as open_to_read() and read_pieces(). Any thread.
Result<std::string> read_file(std::string const& path, std::size_t max_bytes, FileKinds kinds = kRegularFile);

}  // namespace catena
