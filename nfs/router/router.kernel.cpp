// SPDX-License-Identifier: Apache-2.0
// One work-item a packet. Reads ipv4.dst, ipv4.ttl, ipv4.checksum (and both MAC addresses where the port table has
// entries), writes all of these but ipv4.dst, meta.port, and a RouteResult. Deterministic; no scratch memory. The
// tables in the state are read-only: two dependent loads for a packet, three where a prefix longer than /24 is near.
#include <catena/kernel/context.hpp>

#include "lookup.kernel.hpp"
#include "router.layout.hpp"

namespace catena::router {

using kernel::Context;
using kernel::IsoPtr;
using kernel::PacketView;

template <typename Entry>
inline u32 find_hop(Context const& ctx, LookupTable<Entry> const& table, u32 address) {
  return find_hop<Entry>(
      address, [&](u64 i) { return ctx.array(table.tbl24)[i]; }, [&](u64 i) { return ctx.array(table.tbl8)[i]; });
}

/// A template, so that a plan without MAC addresses has no code for them. An output column goes back whole: a packet
/// whose addresses stay gets what it had.
template <typename View>
inline void write_macs(View const& packet, KernelHop const& hop, bool rewrites) {
  if constexpr (packet::contains(CATENA_WRITES, packet::kEthDst)) {
    packet.template set<packet::kEthDst>(rewrites ? hop.eth_dst : packet.template get<packet::kEthDst>());
    packet.template set<packet::kEthSrc>(rewrites ? hop.eth_src : packet.template get<packet::kEthSrc>());
  }
}

/// RFC 1624, equation 3, for a TTL that went down by one.
inline u16 checksum_after_hop(u16 checksum) {
  u32 sum = (~static_cast<u32>(checksum) & 0xFFFFU) + 0xFEFFU;
  sum = (sum & 0xFFFFU) + (sum >> 16);
  return static_cast<u16>(~sum);
}

inline void route(Context const& ctx, PacketView const& packet) {
  State const& state = ctx.state<State>();
  const u32 address = packet.get<packet::kIpv4Dst>();
  const u8 ttl = packet.get<packet::kIpv4Ttl>();
  const u16 checksum = packet.get<packet::kIpv4Checksum>();
  const u32 number = state.is_wide != 0 ? find_hop(ctx, state.wide, address) : find_hop(ctx, state.narrow, address);
  const KernelHop hop = ctx.array(state.hops)[number];

  u32 decision = kForward;
  if (ttl <= 1) {
    decision = kTtlExpired;
  } else if (number == kNoHop) {
    decision = kNoRoute;
  }
  const bool forward = decision == kForward;
  packet.set<packet::kIpv4Ttl>(forward ? static_cast<u8>(ttl - 1) : ttl);
  packet.set<packet::kIpv4Checksum>(forward ? checksum_after_hop(checksum) : checksum);
  write_macs(packet, hop, forward && hop.rewrites_macs != 0);
  packet.set<packet::kMetaPort>(forward ? static_cast<u16>(hop.port) : u16{0});
  packet.set_result(RouteResult{decision});
}

}  // namespace catena::router

CATENA_KERNEL(router) {
  const auto packet = ctx.packet();
  if (packet.valid()) {
    catena::router::route(ctx, packet);
  }
}
