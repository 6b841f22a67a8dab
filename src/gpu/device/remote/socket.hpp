// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"

#include <catena/core/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

/// Frames over a stream socket, and memory shared by a descriptor.
namespace catena::device::remote {

using Fd = FileDescriptor;

struct Frame {
  std::uint32_t call = 0;
  std::vector<std::byte> body;
  Fd fd;  ///< at most one
};

/// Sends a frame, with `fd` unless it is -1. Waits while the other end does not read. Unavailable if the other end is
/// gone.
Status send_frame(int socket, std::uint32_t call, std::span<const std::byte> body, int fd = -1);
/// Receives frames in parts, as they arrive.
class FrameReader {
 public:
  /// The next frame once it is complete, else nullopt. Never waits. Errors: as receive_frame().
  Result<std::optional<Frame>> poll(int socket, std::uint32_t max_bytes) {
    return take(socket, max_bytes, MSG_DONTWAIT);
  }

 private:
  friend Result<Frame> receive_frame(int socket, std::uint32_t max_bytes);
  Result<std::optional<Frame>> take(int socket, std::uint32_t max_bytes, int flags);

  std::array<std::byte, 8> header_{};  ///< a FrameHeader
  std::size_t header_bytes_ = 0;       ///< received so far
  std::size_t body_bytes_ = 0;
  Frame frame_;
};

/// Waits for a frame. Unavailable if the other end is gone; InvalidArgument for a body of more than `max_bytes`. Memory
/// is allocated as the bytes arrive, not as they are announced.
Result<Frame> receive_frame(int socket, std::uint32_t max_bytes);

/// Shared memory, mapped for reading and writing.
class Mapping {
 public:
  Mapping() = default;
  /// Creates zeroed memory of a sealed size, for another process to map. ResourceExhausted if not enough memory is
  /// left; the text gives the requested size. `bytes` may be 0: the mapping is empty.
  static Result<Mapping> create(std::size_t bytes);
  /// Maps `bytes` bytes of `fd` from `offset` on, and takes ownership of `fd`.
  ///   InvalidArgument    no memory sealed against shrinking (see memfd_create(2), F_SEAL_SHRINK), or too short, or
  ///                      `offset` is not a multiple of a page
  ///   ResourceExhausted  the memory cannot be mapped
  static Result<Mapping> map(Fd fd, std::size_t bytes, std::uint64_t offset = 0);
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
  Fd take_fd() { return std::move(fd_); }
  /// Precondition: a T fits.
  template <typename T>
  T& as() const {
    return *reinterpret_cast<T*>(bytes_.data());
  }

 private:
  Mapping(Fd fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}
  Fd fd_;
  std::span<std::byte> bytes_;
};

}  // namespace catena::device::remote
