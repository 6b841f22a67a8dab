// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"

#include <catena/core/status.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sys/socket.h>

/// Frames over a stream socket between two processes of one machine: [FrameHeader][body], with a descriptor or without.
namespace catena::ipc {

struct FrameHeader {
  std::uint32_t call;
  std::uint32_t bytes;  ///< of the body
};

struct Frame {
  std::uint32_t call = 0;
  std::vector<std::byte> body;
  FileDescriptor fd;  ///< at most one
};

/// Of a process that is stopped, or hostile.
inline constexpr std::chrono::milliseconds kSendLimit{5000};

/// Sends a frame, with `fd` unless it is -1. Waits while the other end does not read. Unavailable if the other end is
/// gone, or has read nothing for `limit`: then the connection is shut down, since a part of the frame may be on its
/// way.
Status send_frame(int socket, std::uint32_t call, std::span<const std::byte> body, int fd = -1,
                  std::chrono::milliseconds limit = kSendLimit);
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

}  // namespace catena::ipc
