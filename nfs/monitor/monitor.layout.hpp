// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// What the monitor's host code and its kernel share.
namespace catena::monitor {

/// Packets that the kernel adds up together: those of a work-group, which follow one another in a launch.
inline constexpr u32 kGroupPackets = 256;

/// What the kernel says of a packet: of the first of a flow in its group what all of the flow there add up to, of
/// another one what it has itself.
struct FlowResult {
  u32 bytes;      ///< IPv4 total lengths
  u16 tcp_flags;  ///< OR, without the bits of the data offset
  u8 others;      ///< of the first one: how many of the flow come after it in the group; else 0
  u8 distance;    ///< packets from the first one on to the last of the flow; from another one back to the first
};
static_assert(sizeof(FlowResult) == 8 && kGroupPackets == 256, "u8 has room for all but one of a group");

/// What a group has in its local memory of each packet.
inline constexpr u32 kLocalBytesPerPacket = 8 + 8 + 4;

}  // namespace catena::monitor
