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
  kArp = 10,           ///< not IPv4: the host decides
  kControlFrame = 11,  ///< the same
  kNotRoutable = 12,   ///< the same
};

struct RouteResult {
  u32 decision;  ///< Decision, and kHasOptions
};
static_assert(sizeof(RouteResult) == 4);

/// In a result: the header has options, which are not in fields, so complete() verifies its checksum.
inline constexpr u32 kHasOptions = 0x100;

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
  u64 forwards_multicast;
};
static_assert(sizeof(State) == 112);

}  // namespace catena::router
