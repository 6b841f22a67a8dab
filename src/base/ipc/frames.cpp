// SPDX-License-Identifier: Apache-2.0
#include "base/ipc/frames.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace catena::ipc {
namespace {

Status gone() { return absl::UnavailableError("the other end of the connection is gone"); }

/// What is sent or received with one descriptor at most.
struct Message {
  explicit Message(std::span<std::byte> bytes) : part{bytes.data(), bytes.size()} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
  }
  void make_room() {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  iovec part;
  msghdr header{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
};

/// Waits for room in `socket`. Unavailable: there is none.
Status await_room(int socket, std::chrono::milliseconds limit) {
  pollfd room{.fd = socket, .events = POLLOUT, .revents = 0};
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    const int ready = ::poll(&room, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) {
      return absl::OkStatus();
    }
    if (ready == 0 || errno != EINTR) {
      ::shutdown(socket, SHUT_RDWR);
      return absl::UnavailableError("the other end of the connection does not read");
    }
  }
}

Status send_all(int socket, std::span<const std::byte> bytes, int fd, std::chrono::milliseconds limit) {
  while (!bytes.empty()) {
    Message message({const_cast<std::byte*>(bytes.data()), bytes.size()});
    if (fd >= 0) {
      message.make_room();
      cmsghdr* const control = CMSG_FIRSTHDR(&message.header);
      control->cmsg_level = SOL_SOCKET;
      control->cmsg_type = SCM_RIGHTS;
      control->cmsg_len = CMSG_LEN(sizeof fd);
      std::memcpy(CMSG_DATA(control), &fd, sizeof fd);
    }
    const ssize_t sent = sendmsg(socket, &message.header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      CATENA_RETURN_IF_ERROR(await_room(socket, limit));
      continue;
    }
    if (sent <= 0) {
      return gone();
    }
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
    fd = -1;
  }
  return absl::OkStatus();
}

/// The next bytes, at most so many, and a descriptor that came with them; 0: nothing is there, with MSG_DONTWAIT.
Result<std::size_t> receive_some(int socket, std::span<std::byte> bytes, FileDescriptor& fd, int flags) {
  for (;;) {
    Message message(bytes);
    message.make_room();
    const ssize_t received = recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC | flags);
    if (received < 0 && errno == EINTR) {
      continue;
    }
    if (received < 0 && (flags & MSG_DONTWAIT) != 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return std::size_t{0};
    }
    if (received <= 0) {
      return gone();
    }
    for (cmsghdr* control = CMSG_FIRSTHDR(&message.header); control != nullptr;
         control = CMSG_NXTHDR(&message.header, control)) {
      if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) {
        continue;
      }
      // padding leaves room for more than one: the last stays, the others are closed
      const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int received_fd = -1;
        std::memcpy(&received_fd, CMSG_DATA(control) + i * sizeof received_fd, sizeof received_fd);
        fd = FileDescriptor(received_fd);
      }
    }
    return static_cast<std::size_t>(received);
  }
}

}  // namespace

Status send_frame(int socket, std::uint32_t call, std::span<const std::byte> body, int fd,
                  std::chrono::milliseconds limit) {
  const FrameHeader header{call, static_cast<std::uint32_t>(body.size())};
  CATENA_RETURN_IF_ERROR(send_all(socket, std::as_bytes(std::span(&header, 1)), fd, limit));
  return send_all(socket, body, -1, limit);
}

Result<Frame> receive_frame(int socket, std::uint32_t max_bytes) {
  FrameReader reader;
  CATENA_ASSIGN_OR_RETURN(std::optional<Frame> frame, reader.take(socket, max_bytes, 0));
  if (!frame) {
    return gone();  // who waits gets one, or an error
  }
  return *std::move(frame);
}

Result<std::optional<Frame>> FrameReader::take(int socket, std::uint32_t max_bytes, int flags) {
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  static_assert(sizeof(FrameHeader) == sizeof header_);
  for (;;) {
    const bool has_header = header_bytes_ == header_.size();
    FrameHeader header{};
    std::memcpy(&header, header_.data(), sizeof header);
    if (has_header && header.bytes > max_bytes) {
      return absl::InvalidArgumentError(
          concat("a message of ", header.bytes, " bytes; at most ", max_bytes, " are taken"));
    }
    if (has_header && body_bytes_ == header.bytes) {
      frame_.call = header.call;
      header_bytes_ = body_bytes_ = 0;
      return std::exchange(frame_, Frame{});
    }
    std::span<std::byte> room = std::span(header_).subspan(header_bytes_);
    if (has_header) {
      // memory is taken as the bytes come, not as they are announced
      frame_.body.resize(std::min<std::size_t>(header.bytes, body_bytes_ + kChunk));
      room = std::span(frame_.body).subspan(body_bytes_);
    }
    CATENA_ASSIGN_OR_RETURN(const std::size_t received, receive_some(socket, room, frame_.fd, flags));
    if (received == 0) {
      return std::nullopt;
    }
    (has_header ? body_bytes_ : header_bytes_) += received;
  }
}

}  // namespace catena::ipc
