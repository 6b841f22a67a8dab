// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catena/core/text.hpp>

#include <cerrno>
#include <cstring>
#include <utility>

namespace catena::dataplane {

Result<OutputFile> OutputFile::open(std::string const& path) {
  const bool standard = path == kStandardStream;
  const int descriptor = standard ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                                  : ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    const int error = errno;
    return absl::ErrnoToStatus(error, concat(standard ? "standard output" : path, ": cannot be created"));
  }
  return OutputFile(standard ? "standard output" : path, descriptor);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      failure_(std::move(other.failure_)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
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
