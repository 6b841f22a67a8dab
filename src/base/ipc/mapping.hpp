// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/ipc/shared_memory.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

/// Memory shared with another process by a descriptor.
namespace catena::ipc {

/// Shared memory, mapped for reading and writing.
class Mapping {
 public:
  Mapping() = default;
  /// Maps new memory, as make_peer_memory() creates it. ResourceExhausted if not enough memory is left; the text gives
  /// the requested size. `bytes` may be 0: the mapping is empty.
  static Result<Mapping> create(const char* name, std::size_t bytes);
  /// Maps `bytes` bytes of `fd` from `offset` on, and takes ownership of `fd`. Pages::kWhenWritten suits large memory
  /// of which little is used.
  ///   InvalidArgument    no memory sealed against shrinking (see memfd_create(2), F_SEAL_SHRINK), or too short, or
  ///                      `offset` is not a multiple of a page
  ///   ResourceExhausted  the memory cannot be mapped
  static Result<Mapping> map(FileDescriptor fd, std::size_t bytes, std::uint64_t offset = 0, Pages pages = Pages::kNow);
  Mapping(Mapping&& other) noexcept
      : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, std::span<std::byte>())) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }
  /// The memory stays mapped without its descriptor.
  FileDescriptor take_fd() { return std::move(fd_); }
  /// Precondition: a T fits.
  template <typename T>
  T& as() const {
    return *reinterpret_cast<T*>(bytes_.data());
  }

 private:
  Mapping(FileDescriptor fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}
  FileDescriptor fd_;
  std::span<std::byte> bytes_;
};

}  // namespace catena::ipc
