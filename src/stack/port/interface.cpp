// SPDX-License-Identifier: Apache-2.0
#include "stack/port/interface.hpp"

#include <catena/core/text.hpp>

#include <arpa/inet.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/core/file_descriptor.hpp"

namespace catena::stack {
namespace {

Status failed(std::string const& interface, std::string_view what) {
  const std::string text = concat(interface, ": ", what, ": ", std::strerror(errno));
  if (errno == EPERM || errno == EACCES) {
    return absl::PermissionDeniedError(concat(text, "; addresses need CAP_NET_ADMIN"));
  }
  return errno == ENODEV ? absl::NotFoundError(text) : absl::UnavailableError(text);
}

ifreq request_of(std::string const& interface) {
  ifreq request{};
  interface.copy(static_cast<char*>(request.ifr_name), IFNAMSIZ - 1);
  return request;
}

sockaddr_in v4_of(std::uint32_t address) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = htonl(address);
  return result;
}

Status add_v4(int socket, std::string const& interface, InterfaceAddress const& address) {
  ifreq request = request_of(interface);
  const auto set = [&](unsigned long call, std::uint32_t value) {
    const sockaddr_in raw = v4_of(value);
    std::memcpy(&request.ifr_addr, &raw, sizeof raw);
    return ::ioctl(socket, call, &request) == 0;
  };
  const std::uint32_t mask = address.prefix == 0 ? 0 : ~std::uint32_t{0} << (32U - address.prefix);
  return set(SIOCSIFADDR, address.address.v4()) && set(SIOCSIFNETMASK, mask) ? absl::OkStatus()
                                                                             : failed(interface, "IPv4 address");
}

Status add_v6(std::string const& interface, InterfaceAddress const& address) {
  const FileDescriptor socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  in6_ifreq request{};
  request.ifr6_prefixlen = address.prefix;
  request.ifr6_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  ::inet_pton(AF_INET6, packet::to_string(address.address).c_str(), &request.ifr6_addr);
  return socket && (::ioctl(socket.get(), SIOCSIFADDR, &request) == 0 || errno == EEXIST)
             ? absl::OkStatus()
             : failed(interface, "IPv6 address");
}

}  // namespace

Status bring_up(std::string const& interface, std::span<const InterfaceAddress> addresses) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = request_of(interface);
  if (!socket || ::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) {
    return failed(interface, "flags");
  }
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) {
    return failed(interface, "up");
  }
  for (InterfaceAddress const& address : addresses) {
    CATENA_RETURN_IF_ERROR(address.address.is_v4() ? add_v4(socket.get(), interface, address)
                                                   : add_v6(interface, address));
  }
  return absl::OkStatus();
}

}  // namespace catena::stack
