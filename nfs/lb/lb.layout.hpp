// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// Shared by the load balancer's host code and its kernel.
namespace catena::lb {

enum Action : u8 {
  kKeep = 0,       ///< the packet belongs to no service and no flow
  kToBackend = 1,  ///< destination address and port are replaced
  kToClient = 2,   ///< source address and port are replaced
};

/// Decision of prepare() about a packet.
struct Aux {
  u32 address;  ///< the new address and port, host order
  u16 port;
  u16 backend;  ///< number of the flow's backend, for the record line
  u8 action;    ///< Action
  u8 is_udp;    ///< 1: checksum 0 means no checksum (RFC 768)
  u16 unused;
};
static_assert(sizeof(Aux) == 12);

}  // namespace catena::lb
