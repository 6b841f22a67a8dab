// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <memory>
#include <string>

#include "stack/port/vnet_port.hpp"

namespace catena::stack {

/// An interface of the kernel, also one end of a veth pair, by a packet socket. It shall have no address of the kernel:
/// the kernel sees the frames, too, and would reset connections to its own addresses.
class PacketPort final : public VnetPort {
 public:
  /// Frames for any MAC are received. PermissionDenied: needs CAP_NET_RAW. NotFound: no such interface.
  static Result<std::unique_ptr<PacketPort>> open(std::string const& interface);

 private:
  using VnetPort::VnetPort;
};

}  // namespace catena::stack
