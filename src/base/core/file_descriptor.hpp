// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <utility>

namespace catena {

/// Owns a file descriptor, or is empty. One thread at a time.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// `fd` below 0: empty.
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { close(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Passes ownership to the caller.
  int release() { return std::exchange(fd_, -1); }
  /// False, with errno set, if written data may be lost. May be called more than once.
  bool close() { return fd_ < 0 || ::close(release()) == 0; }

 private:
  int fd_ = -1;
};

}  // namespace catena
