// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// Shared by the monitor's host code and its kernel.
namespace catena::monitor {

/// Packets summed together by the kernel: those of a work-group, consecutive in a launch.
inline constexpr u32 kGroupPackets = 256;

/// The kernel's result for a packet. For the first packet of a flow in its group: the sum over the flow's packets in
/// the group. For other packets: the packet's own values.
struct FlowResult {
  u32 bytes;      ///< IPv4 total lengths
  u16 tcp_flags;  ///< OR, without the bits of the data offset
  u8 others;      ///< first packet: number of the flow's later packets in the group; others: 0
  u8 distance;    ///< first packet: distance to the flow's last packet; others: distance back to the first
};
static_assert(sizeof(FlowResult) == 8 && kGroupPackets == 256, "u8 has room for all but one of a group");

/// Local memory of a group, per packet.
inline constexpr u32 kLocalBytesPerPacket = 8 + 8 + 4;

}  // namespace catena::monitor
