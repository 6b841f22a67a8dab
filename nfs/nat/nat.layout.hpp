// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// Shared by the host code and the kernel of nat.
namespace catena::nat {

/// Parts of a packet rewritten by compute(). All values except kLeave rewrite both addresses and the IPv4 checksum.
enum Rewrite : u32 {
  kLeave = 0,      ///< nothing: not translated, or done by prepare()
  kAddresses = 1,  ///< nothing more: a later fragment
  kTcp = 2,        ///< both ports and the TCP checksum
  kUdp = 3,        ///< both ports and the UDP checksum, if present
  kEcho = 4,       ///< the ICMP identifier and the ICMP checksum, which covers no addresses
};

/// prepare()'s decision about one packet: its new header values, in host order. An untranslated end keeps the packet's
/// values.
struct Aux {
  u32 source;
  u32 destination;
  u16 source_port;       ///< kEcho: the identifier
  u16 destination_port;  ///< kEcho: unused
  u32 rewrite;           ///< Rewrite
};
static_assert(sizeof(Aux) == 16);

}  // namespace catena::nat
