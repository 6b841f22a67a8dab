// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>
#include <catena/kernel/fault.hpp>

#include "functions/lpm/lpm.layout.hpp"

/// Shared by the router's host code and its kernel.
namespace catena::router {

/// Decision about a packet. The values after kForward are 1 + the position in the drop reasons.
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
  kArp = 10,              ///< not IPv4: the host decides
  kControlFrame = 11,     ///< the same
  kNotRoutable = 12,      ///< the same
  kBadOptions = 13,       ///< of a packet with options: complete() decides
  kSourceRoute = 14,      ///< the same
  kBadIcmpChecksum = 15,  ///< of an echo request to the router: complete() decides
};

/// In a result in place of a decision: the header has options, which are in no field of a kernel. The packet is as it
/// came, and complete() decides.
inline constexpr u32 kHasOptions = 0x100;

struct RouteResult {
  u32 decision;  ///< Decision or kHasOptions
};
static_assert(sizeof(RouteResult) == 4);

/// True for addresses other than those of a single routable host: 0/8 and 127/8 (RFC 1812, section 5.3.7), link-local
/// 169.254/16 (RFC 3927, section 7), multicast, 240/4 with 255.255.255.255.
inline bool is_special(u32 address) {
  const u32 net = address >> 24;
  return (net == 0) | (net == 127) | (net >= 224) | ((address >> 16) == 0xA9FE);
}

inline bool is_multicast(u32 address) { return address >> 28 == 0xE; }

/// Position at which the search for `address` in a table of `size` entries begins.
inline u32 first_in_table(u32 address, u32 size) { return (address * 2654435761U >> 12) & (size - 1); }

/// Whether an address is in a table made by address_table(): hashed, `size` entries (a power of two), of which at least
/// half are 0 for empty. `at(i)`: entry number i. True for address 0.
template <typename At>
inline bool is_in_table(u32 address, u32 size, At at) {
  u32 i = first_in_table(address, size);
  u32 entry = at(i);
  // bounded, as a kernel must be
  for (u32 step = 1; step < size && entry != 0 && entry != address; ++step) {
    i = (i + 1) & (size - 1);
    entry = at(i);
  }
  return entry == address;
}

/// Decision by a packet's addresses. `is_no_source`: the source is one of the router's own addresses or a broadcast
/// address of a network at one of its ports.
inline u32 check_addresses(u32 src, u32 dst, bool is_no_source, bool forwards_multicast) {
  if (is_special(src) || is_no_source) {
    return kMartianSource;
  }
  if (is_multicast(dst)) {
    // 224.0.0/24 never leaves its link (RFC 5771, section 4)
    return forwards_multicast && dst >> 8 != 0xE00000 ? kForward : kMulticast;
  }
  if (dst == 0xFFFFFFFFU) {
    return kBroadcast;
  }
  return is_special(dst) ? kMartianDestination : kForward;
}

/// A next hop in the kernel's format: MAC addresses in the low 48 bits.
struct KernelHop {
  u64 eth_dst;
  u64 eth_src;
  u16 port;
  u16 rewrites_macs;  ///< 0: eth_dst and eth_src are unused
  u32 decision;       ///< kForward, or the decision of a special route
};
static_assert(sizeof(KernelHop) == 24);

struct State {
  lpm::LookupState routes;
  kernel::StateArray<KernelHop> hops;  ///< [next hops], number 0: no route
  kernel::StateArray<u64> own_macs;    ///< sorted; frames to other addresses are dropped; empty: accepts all
  kernel::StateArray<u32> no_sources;  ///< in the form of is_in_table()
  u64 forwards_multicast;
};
static_assert(sizeof(State) == 128);

}  // namespace catena::router
