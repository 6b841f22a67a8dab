// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>
#include <catena/kernel/fault.hpp>

/// What the router's host code and its kernel share.
namespace catena::router {

/// What becomes of a packet. The values after kForward are 1 + the position in the drop reasons.
enum Decision : u32 {
  kForward = 0,
  kTtlExpired = 1,
  kNoRoute = 2,
  kToRouter = 3,
  kBroadcast = 4,
  kMulticast = 5,
  kMartianSource = 6,
  kMartianDestination = 7,
  kBadChecksum = 8,
  kOtherMac = 9,
  kArp = 10,           ///< not IPv4: the host decides
  kControlFrame = 11,  ///< the same
  kNotRoutable = 12,   ///< the same
};

struct RouteResult {
  u32 decision;  ///< Decision, and kHasOptions
};
static_assert(sizeof(RouteResult) == 4);

/// In a result: the header has options, which fields do not show, so complete() verifies its checksum.
inline constexpr u32 kHasOptions = 0x100;

/// Number 0 of the next hops stands for "no route".
inline constexpr u32 kNoHop = 0;

/// A next hop as the kernel sees it: MAC addresses in the low 48 bits.
struct KernelHop {
  u64 eth_dst;
  u64 eth_src;
  u16 port;
  u16 rewrites_macs;  ///< 0: eth_dst and eth_src say nothing
  u32 decision;       ///< kForward, or what becomes of packets that this "next hop" stands for
};
static_assert(sizeof(KernelHop) == 24);

/// A DIR-24-8 table (Gupta, Lin, McKeown: "Routing lookups in hardware at memory access speeds", INFOCOM 1998): tbl24
/// has an entry for each /24, tbl8 has groups of 256 entries for those /24 that hold longer prefixes. An entry is a
/// next hop, or with its top bit set the number of a group. Entries have 2 bytes where next hops and groups allow it.
template <typename Entry>
struct LookupTable {
  kernel::StateArray<Entry> tbl24;  ///< [1 << 24]
  kernel::StateArray<Entry> tbl8;   ///< [groups][256]
};
template <typename Entry>
inline constexpr Entry kGroupFlag = static_cast<Entry>(Entry{1} << (sizeof(Entry) * 8 - 1));

struct State {
  LookupTable<u16> narrow;  ///< empty if `wide` is used
  LookupTable<u32> wide;
  kernel::StateArray<KernelHop> hops;  ///< [next hops], number 0: no route
  kernel::StateArray<u64> own_macs;    ///< frames to others are dropped; sorted; empty: all are taken
  u64 is_wide;
  u64 forwards_multicast;
};
static_assert(sizeof(State) == 112);

}  // namespace catena::router
