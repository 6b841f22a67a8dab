// SPDX-License-Identifier: Apache-2.0
#include "stack/port/tap_port.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "packet/vnet_header.hpp"

namespace catena::stack {

std::unique_ptr<TapPort> TapPort::adopt(FileDescriptor tap) {
  return std::unique_ptr<TapPort>(new TapPort(std::move(tap)));
}

Result<std::unique_ptr<TapPort>> TapPort::open(std::string const& name) {
  CATENA_RETURN_IF_ERROR(check_interface_name(name));
  const std::string cure = concat("a TAP needs CAP_NET_ADMIN, or `ip tuntap add mode tap user ", ::getuid(), " name ",
                                  name, "` by root before");
  FileDescriptor fd(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) {
    return kernel_error("/dev/net/tun", cure);
  }
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), name.size());
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  int header = sizeof(packet::VnetHeader);
  const bool is_open = ::ioctl(fd.get(), TUNSETIFF, &request) == 0;
  if (!is_open && errno == EBUSY) {
    return absl::AlreadyExistsError(concat("another process has the TAP ", name));
  }
  if (!is_open || ::ioctl(fd.get(), TUNSETVNETHDRSZ, &header) != 0 ||
      ::ioctl(fd.get(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) {
    return kernel_error(concat("TAP ", name), cure);
  }
  return std::unique_ptr<TapPort>(new TapPort(std::move(fd)));
}

}  // namespace catena::stack
