// SPDX-License-Identifier: Apache-2.0
// One work-item a packet. Reads and writes addresses, ports and both checksums: an output column goes back whole, so
// what stays is written as it was read. No state, no result: the host has decided everything. Deterministic.
#include <catena/kernel/context.hpp>

#include "lb.layout.hpp"

namespace catena::lb {

inline u32 inverted(u32 word) { return ~word & 0xFFFFU; }

/// ~m + m' of RFC 1624, equation 3, for both words of an address that changes.
inline u32 address_change(u32 before, u32 after) {
  return inverted(before >> 16) + (after >> 16) + inverted(before & 0xFFFFU) + (after & 0xFFFFU);
}

/// HC' = ~(~HC + change); `change` is the sum of at most three words that changed.
inline u16 corrected(u16 checksum, u32 change) {
  u32 sum = inverted(checksum) + change;
  sum = (sum & 0xFFFFU) + (sum >> 16);
  sum = (sum & 0xFFFFU) + (sum >> 16);
  return static_cast<u16>(~sum);
}

/// The transport checksum after `change`. In UDP 0 means that there is none, and a sum of 0 is sent as 0xFFFF.
inline u16 corrected_transport(u16 checksum, u32 change, bool is_udp) {
  if (is_udp && checksum == 0) {
    return 0;
  }
  const u16 sum = corrected(checksum, change);
  return is_udp && sum == 0 ? u16{0xFFFF} : sum;
}

inline void translate(kernel::PacketView const& packet) {
  const Aux aux = packet.aux<Aux>();
  const bool to_backend = aux.action == kToBackend;
  const bool changes = aux.action != kKeep;
  const u32 source = packet.get<packet::kIpv4Src>();
  const u32 destination = packet.get<packet::kIpv4Dst>();
  const u16 source_port = packet.get<packet::kL4Sport>();
  const u16 destination_port = packet.get<packet::kL4Dport>();
  const u16 ip_checksum = packet.get<packet::kIpv4Checksum>();
  const u16 l4_checksum = packet.get<packet::kL4Checksum>();

  const u32 of_address = address_change(to_backend ? destination : source, aux.address);
  const u32 of_port = inverted(to_backend ? destination_port : source_port) + aux.port;
  packet.set<packet::kIpv4Src>(aux.action == kToClient ? aux.address : source);
  packet.set<packet::kIpv4Dst>(to_backend ? aux.address : destination);
  packet.set<packet::kL4Sport>(aux.action == kToClient ? aux.port : source_port);
  packet.set<packet::kL4Dport>(to_backend ? aux.port : destination_port);
  packet.set<packet::kIpv4Checksum>(changes ? corrected(ip_checksum, of_address) : ip_checksum);
  packet.set<packet::kL4Checksum>(changes ? corrected_transport(l4_checksum, of_address + of_port, aux.is_udp != 0)
                                          : l4_checksum);
}

}  // namespace catena::lb

CATENA_KERNEL(lb) {
  const auto packet = ctx.packet();
  if (packet.valid()) {
    catena::lb::translate(packet);
  }
}
