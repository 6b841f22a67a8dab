// SPDX-License-Identifier: Apache-2.0
#include "stack/port/packet_port.hpp"

#include <catena/core/text.hpp>

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <utility>

#include "io/interface.hpp"

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
  const unsigned int index = ::if_nametoindex(interface.c_str());
  if (index == 0) {
    return absl::NotFoundError(concat("no interface ", interface));
  }
  const int on = 1;
  if (::setsockopt(fd.get(), SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0 ||
      ::setsockopt(fd.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0) {
    return kernel_error(concat("interface ", interface), kCure);
  }
  if (Status const& status = io::receive_all_frames(fd.get(), index); !status.ok()) {
    return Status(status.code(), concat("interface ", interface, ": ", std::string(status.message())));
  }
  // a smaller buffer loses frames, no more
  for (const int option : {SO_RCVBUFFORCE, SO_SNDBUFFORCE}) {
    (void)::setsockopt(fd.get(), SOL_SOCKET, option, &kBufferBytes, sizeof kBufferBytes);
  }
  return std::unique_ptr<PacketPort>(new PacketPort(std::move(fd)));
}

}  // namespace catena::stack
