// SPDX-License-Identifier: Apache-2.0
#include "io/output_file.hpp"

#include "base/core/open_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace catena::io {
namespace {

/// How often is looked whether a FIFO has a reader: an open() that waits for one could not be given up.
constexpr std::chrono::milliseconds kReaderCheck{20};

/// Waits for the reader of a FIFO, and says so. Cancelled: that was given up.
Result<OpenedFile> open_to_write(std::string const& path, std::stop_token const& give_up) {
  constexpr int kFlags = O_WRONLY | O_NONBLOCK;
  constexpr mode_t kMode = 0644;
  Result<OpenedFile> file = open_named_file(path, kFlags | O_CREAT, kAnyStream, kMode);
  if (absl::IsUnavailable(file.status())) {
    spdlog::info("waiting for a reader of {}", path);
  }
  while (absl::IsUnavailable(file.status())) {
    if (give_up.stop_requested()) {
      return absl::CancelledError(concat(escaped(path), ": cannot be created: it has no reader"));
    }
    std::this_thread::sleep_for(kReaderCheck);
    file = open_named_file(path, kFlags, kAnyStream);
  }
  if (file.ok()) {
    ::fcntl(file->fd.get(), F_SETFL, ::fcntl(file->fd.get(), F_GETFL) & ~O_NONBLOCK);
  }
  return file;
}

Result<OpenedFile> duplicate_standard_output() {
  OpenedFile file{FileDescriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0))};
  return file.fd && ::fstat(file.fd.get(), &file.status) == 0
             ? Result<OpenedFile>(std::move(file))
             : absl::ErrnoToStatus(errno, "standard output: cannot be created");
}

}  // namespace

bool names_standard_output(std::string const& path) {
  struct stat named {};
  struct stat standard {};
  return path == kStandardStream || (::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &standard) == 0 &&
                                     named.st_dev == standard.st_dev && named.st_ino == standard.st_ino &&
                                     (!S_ISCHR(standard.st_mode) || ::isatty(STDOUT_FILENO) == 1));
}

std::string socket_error(std::string const& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)
             ? concat(escaped(path), " is a socket, which cannot be opened by its name; use a FIFO (mkfifo) or a pipe")
             : std::string();
}

Result<OutputFile> OutputFile::open(std::string const& path, std::stop_token const& give_up) {
  const bool standard = names_standard_output(path);
  if (const std::string error = standard ? std::string() : socket_error(path); !error.empty()) {
    return absl::InvalidArgumentError(error);
  }
  if (standard && acts_for_another_user()) {
    return absl::PermissionDeniedError(concat(escaped(path), ": standard output is the service's own"));
  }
  CATENA_ASSIGN_OR_RETURN(OpenedFile file, standard ? duplicate_standard_output() : open_to_write(path, give_up));
  const mode_t mode = file.status.st_mode;
  const bool is_stream = ::isatty(file.fd.get()) == 1 || S_ISFIFO(mode) || S_ISSOCK(mode);
  return OutputFile(standard ? "standard output" : escaped(path), file.fd.release(), is_stream, standard);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      is_stream_(other.is_stream_),
      is_standard_(other.is_standard_),
      failure_(std::move(other.failure_)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(is_stream_, other.is_stream_);
  std::swap(is_standard_, other.is_standard_);
  std::swap(failure_, other.failure_);
  return *this;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

Status OutputFile::start() {
  // what a shell opened may be there to be appended to
  struct stat status {};
  if (!is_standard_ && ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) &&
      ::ftruncate(descriptor_, 0) != 0) {
    fail("ftruncate");
  }
  return failure_;
}

Status OutputFile::write(const void* bytes, std::size_t count) {
  const auto* next = static_cast<const char*>(bytes);
  while (count > 0 && failure_.ok()) {
    const ssize_t step = ::write(descriptor_, next, count);
    if (step >= 0) {
      next += step;
      count -= static_cast<std::size_t>(step);
    } else if (errno == EAGAIN) {  // a standard output that somebody made so
      pollfd room{descriptor_, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      fail("write");
    }
  }
  return failure_;
}

Status OutputFile::close() {
  if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0) {
    fail("close");
  }
  return failure_;
}

void OutputFile::fail(const char* call) {
  if (failure_.ok()) {
    failure_ = absl::DataLossError(
        concat(path_, ": cannot be written, the file is incomplete: ", call, ": ", std::strerror(errno)));
  }
}

}  // namespace catena::io
