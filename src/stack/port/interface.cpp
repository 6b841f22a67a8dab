// SPDX-License-Identifier: Apache-2.0
#include "stack/port/interface.hpp"

#include <catena/core/text.hpp>

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/core/file_descriptor.hpp"
#include "packet/address_bytes.hpp"
#include "stack/port/vnet_port.hpp"

namespace catena::stack {
namespace {

Status failed(std::string const& interface, std::string_view what) {
  const std::string action = concat(interface, ": ", what);
  return errno == ENODEV ? absl::NotFoundError(concat(action, ": ", std::strerror(errno)))
                         : kernel_error(action, "addresses need CAP_NET_ADMIN");
}

ifreq request_of(std::string const& interface) {
  ifreq request{};
  interface.copy(static_cast<char*>(request.ifr_name), IFNAMSIZ - 1);
  return request;
}

/// RTM_NEWADDR (rtnetlink(7)) and its answer.
struct NewAddress {
  nlmsghdr header;
  ifaddrmsg about;
  rtattr local;
  std::array<std::uint8_t, 16> bytes;
};
struct Answer {
  nlmsghdr header;
  nlmsgerr error;
};

/// Adds an address at once: without a search for a duplicate, which would leave an IPv6 address unused for seconds.
Status add(std::string const& interface, InterfaceAddress const& address) {
  const bool is_v4 = address.address.is_v4();
  const std::size_t bytes = is_v4 ? sizeof(in_addr) : sizeof(in6_addr);
  NewAddress request{};
  const packet::AddressBytes all = packet::to_bytes(address.address);
  std::ranges::copy(std::span(all).last(bytes),
                    request.bytes.begin());  // an IPv4 address is the end of its mapped form
  request.local.rta_type = IFA_LOCAL;
  request.local.rta_len = static_cast<unsigned short>(RTA_LENGTH(bytes));
  request.about.ifa_family = is_v4 ? AF_INET : AF_INET6;
  request.about.ifa_prefixlen = address.prefix;
  request.about.ifa_flags = is_v4 ? 0 : IFA_F_NODAD;
  request.about.ifa_index = ::if_nametoindex(interface.c_str());
  request.header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof request.about) + RTA_LENGTH(bytes));
  request.header.nlmsg_type = RTM_NEWADDR;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
  const FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  Answer answer{};
  if (!socket || ::send(socket.get(), &request, request.header.nlmsg_len, 0) < 0 ||
      ::recv(socket.get(), &answer, sizeof answer, 0) < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(int)))) {
    return failed(interface, "netlink");
  }
  errno = -answer.error.error;
  return errno == 0 ? absl::OkStatus() : failed(interface, concat("address ", packet::to_string(address.address)));
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
    CATENA_RETURN_IF_ERROR(add(interface, address));
  }
  return absl::OkStatus();
}

}  // namespace catena::stack
