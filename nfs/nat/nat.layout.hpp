// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// What the host code and the kernel of nat share.
namespace catena::nat {

/// What compute() rewrites in a packet. Beside kLeave both addresses and the IPv4 checksum are rewritten.
enum Rewrite : u32 {
  kLeave = 0,      ///< nothing: not ours, or prepare() has done it
  kAddresses = 1,  ///< nothing more: a later fragment
  kTcp = 2,        ///< both ports and the TCP checksum
  kUdp = 3,        ///< both ports and the UDP checksum, where there is one
  kEcho = 4,       ///< the ICMP identifier and the ICMP checksum, which covers no addresses
};

/// prepare()'s decision about one packet: how its headers are to be, in host order. An end that is not translated
/// is here as it is in the packet.
struct Aux {
  u32 source;
  u32 destination;
  u16 source_port;       ///< kEcho: the identifier
  u16 destination_port;  ///< kEcho: not used
  u32 rewrite;           ///< Rewrite
};
static_assert(sizeof(Aux) == 16);

}  // namespace catena::nat
