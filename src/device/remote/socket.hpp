// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file_descriptor.hpp"

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

/// Frames over a stream socket, and memory behind a descriptor.
namespace catena::device::remote {

using Fd = FileDescriptor;

struct Frame {
  std::uint32_t call = 0;
  std::vector<std::byte> body;
  Fd fd;  ///< one at most
};

/// Sends a frame, and `fd` with it unless it is -1. Waits as long as the other end does not read. Unavailable where
/// that is gone.
Status send_frame(int socket, std::uint32_t call, std::span<const std::byte> body, int fd = -1);
/// Receives frames as far as they have come.
class FrameReader {
 public:
  /// The next frame, once it is there as a whole. Never waits. Errors: as receive_frame().
  Result<std::optional<Frame>> poll(int socket, std::uint32_t max_bytes) {
    return take(socket, max_bytes, MSG_DONTWAIT);
  }

 private:
  friend Result<Frame> receive_frame(int socket, std::uint32_t max_bytes);
  Result<std::optional<Frame>> take(int socket, std::uint32_t max_bytes, int flags);

  std::array<std::byte, 8> header_{};  ///< a FrameHeader
  std::size_t header_bytes_ = 0;       ///< that have come
  std::size_t body_bytes_ = 0;
  Frame frame_;
};

/// Waits for a frame. Unavailable where the other end is gone; InvalidArgument for a body of more than `max_bytes`.
/// Memory is taken as the bytes come, not as they are announced.
Result<Frame> receive_frame(int socket, std::uint32_t max_bytes);

/// Shared memory, mapped for reading and writing.
class Mapping {
 public:
  Mapping() = default;
  /// New memory that nobody can shrink or grow, all zero, for another process to map. ResourceExhausted where there is
  /// not so much; the text says how much was asked for. `bytes` may be 0: then there is nothing.
  static Result<Mapping> create(std::size_t bytes);
  /// `bytes` bytes behind `fd`, from `offset` on, which becomes the mapping's own.
  ///   InvalidArgument    it is no memory that nobody can shrink (see memfd_create(2), F_SEAL_SHRINK), or not so long,
  ///                      or `offset` is no multiple of a page
  ///   ResourceExhausted  there is no room to map it
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
  /// It stays mapped without its descriptor.
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
