// SPDX-License-Identifier: Apache-2.0
#include "stack/port/interface.hpp"

#include <catena/core/text.hpp>

#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

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

/// The address in a socket address of IPv4 or IPv6.
std::optional<packet::Address> address_in(sockaddr const* from) {
  if (from == nullptr || (from->sa_family != AF_INET && from->sa_family != AF_INET6)) {
    return std::nullopt;
  }
  if (from->sa_family == AF_INET) {
    return packet::Address::of_v4(ntohl(reinterpret_cast<sockaddr_in const*>(from)->sin_addr.s_addr));
  }
  return packet::address_of(std::span<const std::uint8_t, sizeof(packet::Address)>(
      reinterpret_cast<sockaddr_in6 const*>(from)->sin6_addr.s6_addr));
}

bool is_link_local(packet::Address const& address) {
  static const InterfaceAddress kLinkLocal{*packet::Address::parse("fe80::"), 10};  // RFC 4291, 2.5.6
  return is_in_network(address, kLinkLocal);
}

/// Calls `use(interface, address)` for each address of each interface that is up.
template <typename Use>
Status for_each_address(Use const& use) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return absl::UnavailableError(concat("addresses of interfaces: ", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, &::freeifaddrs);
  for (ifaddrs const* one = list; one != nullptr; one = one->ifa_next) {
    const std::optional<packet::Address> address = address_in(one->ifa_addr);
    const std::optional<packet::Address> mask = address_in(one->ifa_netmask);
    if (address && mask && (one->ifa_flags & IFF_UP) != 0 && !is_link_local(*address)) {
      const int bits =
          address->is_v4() ? std::popcount(mask->v4()) : std::popcount(mask->high()) + std::popcount(mask->low());
      use(std::string_view(one->ifa_name), InterfaceAddress{*address, static_cast<std::uint8_t>(bits)});
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string to_string(InterfaceAddress const& address) {
  return concat(packet::to_string(address.address), "/", static_cast<unsigned>(address.prefix));
}

bool is_in_network(packet::Address const& address, InterfaceAddress const& network) {
  constexpr unsigned kWord = 64;
  const auto mask = [](unsigned bits) { return bits == 0 ? 0 : ~std::uint64_t{0} << (kWord - bits); };
  constexpr unsigned kBitsBeforeV4 = 96;
  const unsigned bits = network.prefix + (network.address.is_v4() ? kBitsBeforeV4 : 0);
  const std::uint64_t high = mask(std::min(bits, kWord));
  const std::uint64_t low = mask(bits > kWord ? bits - kWord : 0);
  return ((address.high() ^ network.address.high()) & high) == 0 &&
         ((address.low() ^ network.address.low()) & low) == 0;
}

std::vector<InterfaceAddress> addresses_at(std::string const& interface) {
  std::vector<InterfaceAddress> addresses;
  const Status status = for_each_address([&](std::string_view name, InterfaceAddress const& address) {
    if (name == interface) {
      addresses.push_back(address);
    }
  });
  return status.ok() ? addresses : std::vector<InterfaceAddress>();
}

Status check_networks(std::string const& interface, std::span<const InterfaceAddress> addresses) {
  Status result;
  CATENA_RETURN_IF_ERROR(for_each_address([&](std::string_view name, InterfaceAddress const& other) {
    for (InterfaceAddress const& own : addresses) {
      // of two networks with the address the host takes the smaller one
      if (result.ok() && name != interface && other.prefix >= own.prefix &&
          own.address.is_v4() == other.address.is_v4() && is_in_network(own.address, other)) {
        result =
            absl::AlreadyExistsError(concat(to_string(own), " is in the network ", to_string(other), " of ", name));
      }
    }
  }));
  return result;
}

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
