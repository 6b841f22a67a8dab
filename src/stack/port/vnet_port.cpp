// SPDX-License-Identifier: Apache-2.0
#include "stack/port/vnet_port.hpp"

#include <catena/core/text.hpp>

#include <net/if.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "stack/port/vnet.hpp"

namespace catena::stack {
namespace {

using packet::VnetHeader;

constexpr std::size_t kMaxParts = 80;

}  // namespace

Status kernel_error(std::string_view action, std::string_view cure) {
  const int error = errno;
  const std::string text = concat(action, ": ", std::strerror(error));
  return error == EPERM || error == EACCES ? absl::PermissionDeniedError(concat(text, "; ", cure))
                                           : absl::UnavailableError(text);
}

Status check_interface_name(std::string const& name) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    return absl::InvalidArgumentError(concat("interface name '", name, "': 1 to ", IFNAMSIZ - 1, " characters"));
  }
  return absl::OkStatus();
}

VnetPort::VnetPort(FileDescriptor fd) : fd_(std::move(fd)), buffer_(sizeof(VnetHeader) + kMaxFrame) {}

bool VnetPort::send(OutgoingFrame const& frame) {
  VnetHeader header = vnet_header(frame);
  std::array<iovec, kMaxParts> parts{};
  if (frame.parts.size() + 1 > kMaxParts) {
    ++counters_.no_room;
    return false;
  }
  parts[0] = {&header, sizeof header};
  std::size_t count = 1;
  for (std::span<const std::byte> const& part : frame.parts) {
    parts[count++] = {const_cast<std::byte*>(part.data()), part.size()};
  }
  const bool is_sent = ::writev(fd_.get(), parts.data(), static_cast<int>(count)) >= 0;
  ++(is_sent ? counters_.sent : counters_.no_room);
  return is_sent;
}

std::optional<std::span<const std::byte>> VnetPort::receive() {
  for (;;) {
    const ssize_t bytes = ::read(fd_.get(), buffer_.data(), buffer_.size());
    if (bytes < 0 && (errno == EINVAL || errno == EINTR)) {
      continue;  // a frame that no virtio header describes; the kernel has dropped it
    }
    if (bytes < static_cast<ssize_t>(sizeof(VnetHeader))) {
      return std::nullopt;
    }
    VnetHeader header{};
    std::memcpy(&header, buffer_.data(), sizeof header);
    const std::span<const std::byte> frame =
        std::span(buffer_).subspan(sizeof header, static_cast<std::size_t>(bytes) - sizeof header);
    ++counters_.received;
    if (is_intact(header, frame)) {
      return frame;
    }
    ++counters_.bad_checksum;
  }
}

}  // namespace catena::stack
