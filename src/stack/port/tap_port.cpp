// SPDX-License-Identifier: Apache-2.0
#include "stack/port/tap_port.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "stack/tcp/frame.hpp"

namespace catena::stack {
namespace {

/// virtio_net_hdr (virtio 1.1, section 5.1.6); the kernel's header does not compile as C++.
struct VnetHeader {
  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t header_bytes = 0;
  std::uint16_t segment_bytes = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};
static_assert(sizeof(VnetHeader) == 10);
constexpr std::uint8_t kNeedsChecksum = 1;
constexpr std::uint8_t kDataValid = 2;
constexpr std::uint8_t kGsoTcp4 = 1;
constexpr std::uint8_t kGsoTcp6 = 4;
constexpr std::size_t kMaxFrame = 65536 + 128;
constexpr std::size_t kMaxParts = 80;

Status failed(std::string_view what) {
  const int error = errno;
  const std::string text = concat(what, ": ", std::strerror(error));
  return error == EPERM || error == EACCES
             ? absl::PermissionDeniedError(concat(text, "; a TAP needs CAP_NET_ADMIN, or `ip tuntap add mode tap user ",
                                                  ::getuid(), " name NAME` by root before"))
             : absl::UnavailableError(text);
}

}  // namespace

TapPort::TapPort(int fd) : fd_(fd), buffer_(sizeof(VnetHeader) + kMaxFrame) {}
TapPort::~TapPort() { ::close(fd_); }

Result<std::unique_ptr<TapPort>> TapPort::open(std::string const& name) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    return absl::InvalidArgumentError(concat("interface name '", name, "': 1 to ", IFNAMSIZ - 1, " characters"));
  }
  const int fd = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    return failed("/dev/net/tun");
  }
  std::unique_ptr<TapPort> port(new TapPort(fd));
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), name.size());
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  int header = sizeof(VnetHeader);
  if (::ioctl(fd, TUNSETIFF, &request) != 0 || ::ioctl(fd, TUNSETVNETHDRSZ, &header) != 0 ||
      ::ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) {
    return failed(concat("TAP ", name));
  }
  return port;
}

bool TapPort::send(OutgoingFrame const& frame) {
  VnetHeader header{};
  if (frame.checksum_start != 0) {
    header.flags = kNeedsChecksum;
    header.checksum_start = frame.checksum_start;
    header.checksum_offset = kTcpChecksumAt;
  }
  if (frame.segment_bytes != 0) {
    header.gso_type = load_be16(&frame.parts[0][12]) == kTypeIpv4 ? kGsoTcp4 : kGsoTcp6;
    header.header_bytes = frame.header_bytes;
    header.segment_bytes = frame.segment_bytes;
  }
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
  const bool is_sent = ::writev(fd_, parts.data(), static_cast<int>(count)) >= 0;
  ++(is_sent ? counters_.sent : counters_.no_room);
  return is_sent;
}

std::optional<std::span<const std::byte>> TapPort::receive() {
  for (;;) {
    const ssize_t bytes = ::read(fd_, buffer_.data(), buffer_.size());
    if (bytes < static_cast<ssize_t>(sizeof(VnetHeader))) {
      return std::nullopt;
    }
    VnetHeader header{};
    std::memcpy(&header, buffer_.data(), sizeof header);
    const std::span<const std::byte> frame =
        std::span(buffer_).subspan(sizeof header, static_cast<std::size_t>(bytes) - sizeof header);
    ++counters_.received;
    // the kernel's own frames come without a checksum: it vouches for them
    if ((header.flags & (kNeedsChecksum | kDataValid)) != 0 || has_right_checksum(frame)) {
      return frame;
    }
    ++counters_.bad_checksum;
  }
}

}  // namespace catena::stack
