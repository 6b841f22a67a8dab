// SPDX-License-Identifier: Apache-2.0
#include "io/output_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>
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

/// Waits for the reader of a FIFO, and says so. Below 0: errno says why; ECANCELED: that was given up.
int open_to_write(std::string const& path, std::stop_token const& give_up) {
  constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NONBLOCK;
  int descriptor = ::open(path.c_str(), kFlags | O_CREAT, 0644);
  bool has_reader = descriptor >= 0 || errno != ENXIO;
  if (!has_reader) {
    spdlog::info("waiting for a reader of {}", path);
  }
  while (!has_reader) {
    if (give_up.stop_requested()) {
      errno = ECANCELED;
      return -1;
    }
    std::this_thread::sleep_for(kReaderCheck);
    descriptor = ::open(path.c_str(), kFlags);
    has_reader = descriptor >= 0 || errno != ENXIO;
  }
  if (descriptor >= 0) {
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  }
  return descriptor;
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
             ? concat(path, " is a socket, which cannot be opened by its name; use a FIFO (mkfifo) or a pipe")
             : std::string();
}

Result<OutputFile> OutputFile::open(std::string const& path, std::stop_token const& give_up) {
  const bool standard = names_standard_output(path);
  if (const std::string error = standard ? std::string() : socket_error(path); !error.empty()) {
    return absl::InvalidArgumentError(error);
  }
  const int descriptor = standard ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) : open_to_write(path, give_up);
  if (descriptor < 0) {
    const int error = errno;
    return absl::ErrnoToStatus(error, concat(standard ? "standard output" : path, ": cannot be created"));
  }
  struct stat status {};
  const bool is_stream = ::isatty(descriptor) == 1 ||
                         (::fstat(descriptor, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)));
  return OutputFile(standard ? "standard output" : path, descriptor, is_stream, standard);
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
