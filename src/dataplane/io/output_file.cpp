// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/output_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catena/core/text.hpp>

#include <cerrno>
#include <cstring>
#include <utility>

namespace catena::dataplane {
namespace {

/// Waits for the reader of a FIFO, and says so. Below 0: errno says why.
int open_to_write(std::string const& path) {
  int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  if (descriptor < 0 && errno == ENXIO) {
    spdlog::info("waiting for a reader of {}", path);
    return ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  }
  if (descriptor >= 0) {
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  }
  return descriptor;
}

}  // namespace

Result<OutputFile> OutputFile::open(std::string const& path) {
  const bool standard = path == kStandardStream;
  const int descriptor = standard ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) : open_to_write(path);
  if (descriptor < 0) {
    const int error = errno;
    return absl::ErrnoToStatus(error, concat(standard ? "standard output" : path, ": cannot be created"));
  }
  struct stat status {};
  const bool is_stream = ::isatty(descriptor) == 1 ||
                         (::fstat(descriptor, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)));
  return OutputFile(standard ? "standard output" : path, descriptor, is_stream);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      is_stream_(other.is_stream_),
      failure_(std::move(other.failure_)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(is_stream_, other.is_stream_);
  std::swap(failure_, other.failure_);
  return *this;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

Status OutputFile::start() {
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) && ::ftruncate(descriptor_, 0) != 0) {
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

}  // namespace catena::dataplane
