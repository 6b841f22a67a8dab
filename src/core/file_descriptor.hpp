// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <utility>

namespace catena {

/// Owns a file descriptor, or none. One thread at a time.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Below 0: none.
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { close(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// It is the caller's then.
  int release() { return std::exchange(fd_, -1); }
  /// False, and errno says why, where what was written may not be there. Often is no harm.
  bool close() { return fd_ < 0 || ::close(release()) == 0; }

 private:
  int fd_ = -1;
};

}  // namespace catena
