// SPDX-License-Identifier: Apache-2.0
// One work-item a packet, no state, no result. Reads and writes the addresses, ports and checksums of the packet and
// its ICMP header as columns; what prepare() decided comes in Aux. Deterministic. An output column goes back whole, so
// a field that stays is written with what was read.
#include <catena/kernel/context.hpp>

#include "nat.layout.hpp"

namespace catena::nat {

using kernel::PacketView;

/// RFC 1624, equation 3: ~m + m' for the words of a 32-bit and of a 16-bit value.
inline u32 change32(u32 before, u32 after) {
  const u32 inverted = ~before;
  return (inverted >> 16) + (inverted & 0xFFFFU) + (after >> 16) + (after & 0xFFFFU);
}
inline u32 change16(u16 before, u16 after) { return (~static_cast<u32>(before) & 0xFFFFU) + after; }

inline u16 corrected(u16 checksum, u32 change) {
  u32 sum = (~static_cast<u32>(checksum) & 0xFFFFU) + change;
  sum = (sum & 0xFFFFU) + (sum >> 16);
  sum = (sum & 0xFFFFU) + (sum >> 16);
  return static_cast<u16>(~sum);
}

/// RFC 768: 0 says that there is no checksum, and one that comes out as 0 is sent as 0xFFFF.
inline u16 corrected_udp(u16 checksum, u32 change) {
  if (checksum == 0) {
    return 0;
  }
  const u16 result = corrected(checksum, change);
  return result == 0 ? u16{0xFFFF} : result;
}

/// What the packet's headers are before the work.
struct Headers {
  u32 source;
  u32 destination;
  u16 source_port;
  u16 destination_port;
  u16 l4_checksum;
  u64 icmp;  // type, code, identifier, sequence number
};

inline u16 l4_checksum_after(Headers const& before, Aux const& after, u32 addresses) {
  const u32 ports =
      change16(before.source_port, after.source_port) + change16(before.destination_port, after.destination_port);
  switch (after.rewrite) {
    case kTcp:
      return corrected(before.l4_checksum, addresses + ports);
    case kUdp:
      return corrected_udp(before.l4_checksum, addresses + ports);
    case kEcho:
      return corrected(before.l4_checksum, change16(static_cast<u16>(before.icmp >> 16), after.source_port));
    default:
      return before.l4_checksum;
  }
}

inline void translate(PacketView const& packet) {
  const Aux after = packet.aux<Aux>();
  const Headers before{packet.get<packet::kIpv4Src>(),    packet.get<packet::kIpv4Dst>(),
                       packet.get<packet::kL4Sport>(),    packet.get<packet::kL4Dport>(),
                       packet.get<packet::kL4Checksum>(), packet.get<packet::kIcmpHeader>()};
  const u16 ip_checksum = packet.get<packet::kIpv4Checksum>();
  const bool moves = after.rewrite != kLeave;
  const bool ports = after.rewrite == kTcp || after.rewrite == kUdp;
  const u32 addresses = change32(before.source, after.source) + change32(before.destination, after.destination);
  const u64 identifier = static_cast<u64>(after.source_port) << 16;

  packet.set<packet::kIpv4Src>(moves ? after.source : before.source);
  packet.set<packet::kIpv4Dst>(moves ? after.destination : before.destination);
  packet.set<packet::kIpv4Checksum>(moves ? corrected(ip_checksum, addresses) : ip_checksum);
  packet.set<packet::kL4Sport>(ports ? after.source_port : before.source_port);
  packet.set<packet::kL4Dport>(ports ? after.destination_port : before.destination_port);
  packet.set<packet::kIcmpHeader>(after.rewrite == kEcho ? (before.icmp & ~(u64{0xFFFF} << 16)) | identifier
                                                         : before.icmp);
  packet.set<packet::kL4Checksum>(l4_checksum_after(before, after, addresses));
}

}  // namespace catena::nat

CATENA_KERNEL(nat) {
  const auto packet = ctx.packet();
  if (packet.valid()) {
    catena::nat::translate(packet);
  }
}
