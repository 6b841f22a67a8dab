// SPDX-License-Identifier: Apache-2.0
// One work-item a packet. Reads the IPv4 header but its options (and both MAC addresses where the port table has
// entries), writes ipv4.ttl, ipv4.checksum, the MAC addresses, meta.port, and a RouteResult. A packet with options
// stays as it is: the host decides about it. Deterministic; no scratch memory. The tables in the state are read-only:
// two dependent loads for a packet, three where a prefix longer than /24 is near.
#include <catena/kernel/context.hpp>

#include "functions/lpm/lookup.kernel.hpp"
#include "router.layout.hpp"

namespace catena::router {

using kernel::Context;
using kernel::IsoPtr;
using kernel::PacketView;

template <typename Entry>
inline u32 find_hop(Context const& ctx, lpm::LookupTable<Entry> const& table, u32 address) {
  return lpm::find_hop<Entry>(
      address, [&](u64 i) { return ctx.array(table.tbl24)[i]; }, [&](u64 i) { return ctx.array(table.tbl8)[i]; });
}

/// A template, so that a plan without MAC addresses has no code for them. An output column goes back whole: a packet
/// whose addresses stay gets what it had. A frame to a multicast group keeps the group's address.
template <typename View>
inline void write_macs(View const& packet, KernelHop const& hop, bool rewrites, bool group) {
  if constexpr (packet::contains(CATENA_WRITES, packet::kEthDst)) {
    packet.template set<packet::kEthDst>(rewrites && !group ? hop.eth_dst : packet.template get<packet::kEthDst>());
    packet.template set<packet::kEthSrc>(rewrites ? hop.eth_src : packet.template get<packet::kEthSrc>());
  }
}

/// RFC 1624, equation 3, for a TTL that went down by one.
inline u16 checksum_after_hop(u16 checksum) {
  u32 sum = (~static_cast<u32>(checksum) & 0xFFFFU) + 0xFEFFU;
  sum = (sum & 0xFFFFU) + (sum >> 16);
  return static_cast<u16>(~sum);
}

/// RFC 1071 over the twenty bytes that every header has.
inline bool checksum_is_right(PacketView const& packet, u32 src, u32 dst, u8 version, u8 ttl, u16 checksum) {
  u32 sum = static_cast<u32>(version) << 8 | packet.get<packet::kIpv4Tos>();
  sum += packet.get<packet::kIpv4Length>();
  sum += packet.get<packet::kIpv4Id>();
  sum += packet.get<packet::kIpv4Fragment>();
  sum += static_cast<u32>(ttl) << 8 | packet.get<packet::kIpv4Protocol>();
  sum += checksum;
  sum += (src >> 16) + (src & 0xFFFFU) + (dst >> 16) + (dst & 0xFFFFU);
  sum = (sum & 0xFFFFU) + (sum >> 16);
  return ((sum & 0xFFFFU) + (sum >> 16)) == 0xFFFFU;
}

/// Whether the frame is for one of the router's own addresses, or for a group where those are forwarded. A template, so
/// that eth.dst is read only where it is known.
template <typename View>
inline bool is_for_router(Context const& ctx, View const& packet, State const& state, bool to_group) {
  bool own = state.own_macs.count == 0;
  if constexpr (packet::contains(CATENA_READS, packet::kEthDst)) {
    if (state.own_macs.count != 0) {
      const u64 mac = packet.template get<packet::kEthDst>();
      own = to_group && (mac >> 40 & 1) != 0;
      const auto macs = ctx.array(state.own_macs);
      u64 low = 0;
      for (u64 size = state.own_macs.count; size > 0;) {
        const u64 step = size / 2;
        const u64 at = macs[low + step];
        own |= at == mac;
        low = at < mac ? low + step + 1 : low;
        size = at < mac ? size - step - 1 : step;
      }
    }
  }
  return own;
}

/// Why the packet must not be forwarded whatever its route; kForward if nothing speaks against it.
inline u32 check(Context const& ctx, PacketView const& packet, State const& state, u32 src, u32 dst, u8 version, u8 ttl,
                 u16 checksum) {
  const bool forwards_multicast = state.forwards_multicast != 0;
  if (version != 0x45) {
    return kHasOptions;
  }
  if (!is_for_router(ctx, packet, state, forwards_multicast && is_multicast(dst))) {
    return kOtherMac;
  }
  if (!checksum_is_right(packet, src, dst, version, ttl, checksum)) {
    return kBadChecksum;
  }
  const auto no_sources = ctx.array(state.no_sources);
  const bool is_no_source =
      is_in_table(src, static_cast<u32>(state.no_sources.count), [&](u32 i) { return no_sources[i]; });
  return check_addresses(src, dst, is_no_source, forwards_multicast);
}

inline void route(Context const& ctx, PacketView const& packet) {
  State const& state = ctx.state<State>();
  const u32 address = packet.get<packet::kIpv4Dst>();
  const u8 ttl = packet.get<packet::kIpv4Ttl>();
  const u8 version = packet.get<packet::kIpv4Version>();
  const u16 checksum = packet.get<packet::kIpv4Checksum>();
  const u32 number = state.routes.is_wide != 0 ? find_hop(ctx, state.routes.wide, address)
                                               : find_hop(ctx, state.routes.narrow, address);
  const KernelHop hop = ctx.array(state.hops)[number];

  u32 decision = check(ctx, packet, state, packet.get<packet::kIpv4Src>(), address, version, ttl, checksum);
  if (decision == kForward) {
    decision = hop.decision;
    if (ttl <= 1 && (decision == kForward || decision == kNoRoute)) {
      decision = kTtlExpired;
    }
  }
  const bool forward = decision == kForward;
  packet.set<packet::kIpv4Ttl>(forward ? static_cast<u8>(ttl - 1) : ttl);
  packet.set<packet::kIpv4Checksum>(forward ? checksum_after_hop(checksum) : checksum);
  write_macs(packet, hop, forward && hop.rewrites_macs != 0, is_multicast(address));
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
