// SPDX-License-Identifier: Apache-2.0
#include "stack/port/packet_port.hpp"

#include <catena/core/text.hpp>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <utility>

namespace catena::stack {

Result<std::unique_ptr<PacketPort>> PacketPort::open(std::string const& interface) {
  constexpr const char* kCure = "a packet socket needs CAP_NET_RAW";
  constexpr int kBufferBytes = 8 << 20U;  // a window of each of many connections
  CATENA_RETURN_IF_ERROR(check_interface_name(interface));
  // protocol 0: no frame arrives before all is set
  FileDescriptor fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) {
    return kernel_error("packet socket", kCure);
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  if (address.sll_ifindex == 0) {
    return absl::NotFoundError(concat("no interface ", interface));
  }
  packet_mreq all_macs{};
  all_macs.mr_ifindex = address.sll_ifindex;
  all_macs.mr_type = PACKET_MR_PROMISC;
  const int on = 1;
  if (::setsockopt(fd.get(), SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0 ||
      ::setsockopt(fd.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
      ::setsockopt(fd.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all_macs, sizeof all_macs) != 0 ||
      ::bind(fd.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address) != 0) {
    return kernel_error(concat("interface ", interface), kCure);
  }
  // a smaller buffer loses frames, no more
  for (const int option : {SO_RCVBUFFORCE, SO_SNDBUFFORCE}) {
    (void)::setsockopt(fd.get(), SOL_SOCKET, option, &kBufferBytes, sizeof kBufferBytes);
  }
  return std::unique_ptr<PacketPort>(new PacketPort(std::move(fd)));
}

}  // namespace catena::stack
