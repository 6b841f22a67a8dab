// SPDX-License-Identifier: Apache-2.0
// One work-item a packet; a group adds up the flows of its packets. Reads the fields of a flow's key, ipv4.length and
// tcp.flags, writes a FlowResult. No state: the flow table is the host's. Deterministic: each work-item goes through
// the packets of its group in their order, and none writes what another one wrote.
#include <catena/kernel/context.hpp>

#include "monitor.layout.hpp"

namespace catena::monitor {

using kernel::IsoPtr;
using kernel::PacketView;

/// A packet's IPv4 length with its TCP flags above it, as one word. 0 is that of no packet: a length has the header's.
inline u32 counts_of(PacketView const& packet) {
  constexpr u32 kControlBits = 0x0FFF;  // the others are the data offset
  return packet.get<packet::kIpv4Length>() | (packet.get<packet::kTcpFlags>() & kControlBits) << 16;
}
inline u32 bytes_of(u32 counts) { return counts & 0xFFFFU; }
inline u16 tcp_flags_of(u32 counts) { return static_cast<u16>(counts >> 16); }

/// The packets of a group, in its local memory.
struct Group {
  IsoPtr<u64> addresses;   // source, destination
  IsoPtr<u64> transports;  // ports, or ICMP type and code; protocol
  IsoPtr<u32> counts;
};
inline Group group_of(kernel::Context const& ctx) {
  return {ctx.local<u64>(0, kGroupPackets), ctx.local<u64>(8 * kGroupPackets, kGroupPackets),
          ctx.local<u32>(16 * kGroupPackets, kGroupPackets)};
}

inline void put(Group const& group, u32 i, PacketView const& packet) {
  if (!packet.valid()) {
    group.counts.set(i, 0);
    return;
  }
  // a packet has ports or an ICMP header, or neither; what it lacks reads as 0
  const u64 destination_port = packet.get<packet::kL4Dport>() | packet.get<packet::kIcmpHeader>() >> 32;
  group.addresses.set(i, static_cast<u64>(packet.get<packet::kIpv4Src>()) << 32 | packet.get<packet::kIpv4Dst>());
  group.transports.set(i, static_cast<u64>(packet.get<packet::kL4Sport>()) << 48 | destination_port << 32 |
                              packet.get<packet::kIpv4Protocol>());
  group.counts.set(i, counts_of(packet));
}

/// Packets of which one check lets all be read.
constexpr u32 kBlock = 4;

/// Of packet `self` of the group. All work-items read the same packet at the same time.
inline FlowResult result_of(Group const& group, u32 self) {
  const u64 address = group.addresses[self];
  const u64 transport = group.transports[self];
  const u32 own = group.counts[self];
  FlowResult result{bytes_of(own), tcp_flags_of(own), 0, 0};
  u32 first = self;
  for (u32 begin = 0; begin < kGroupPackets; begin += kBlock) {
    u64 addresses[kBlock]{};
    u64 transports[kBlock]{};
    u32 counts[kBlock]{};
    group.addresses.read<kBlock>(begin, addresses);
    group.transports.read<kBlock>(begin, transports);
    group.counts.read<kBlock>(begin, counts);
    CATENA_UNROLL
    for (u32 k = 0; k < kBlock; ++k) {
      const u32 i = begin + k;
      const bool is_same = counts[k] != 0 && addresses[k] == address && transports[k] == transport;
      first = is_same && i < first ? i : first;
      if (is_same && i > self) {
        result.bytes += bytes_of(counts[k]);
        result.tcp_flags |= tcp_flags_of(counts[k]);
        ++result.others;
        result.distance = static_cast<u8>(i - self);
      }
    }
  }
  if (first != self) {
    return {bytes_of(own), tcp_flags_of(own), 0, static_cast<u8>(self - first)};
  }
  return result;
}

}  // namespace catena::monitor

CATENA_KERNEL(monitor) {
  const auto packet = ctx.packet();
  const catena::monitor::Group group = catena::monitor::group_of(ctx);
  put(group, catena::kernel::local_id(), packet);
  catena::kernel::barrier_all();
  if (packet.valid()) {
    packet.set_result(catena::monitor::result_of(group, catena::kernel::local_id()));
  }
}
