// SPDX-License-Identifier: Apache-2.0
// One work-item a packet. Reads and writes ipv4.tos and ipv4.checksum, writes a RemarkResult. Deterministic.
#include <catena/kernel/context.hpp>

#include "remark.layout.hpp"

CATENA_KERNEL(remark) {
  using namespace catena;
  const auto packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const u8 tos = packet.get<packet::kIpv4Tos>();
  const u16 checksum = packet.get<packet::kIpv4Checksum>();
  const u8 to = ctx.array(ctx.state<remark::State>().table)[tos >> 2];
  const bool dropped = to == remark::kDropped;
  const u8 marked = static_cast<u8>(to << 2 | (tos & 3));

  // RFC 1624, equation 3; the other byte of the word is the same before and after
  u32 sum = (~static_cast<u32>(checksum) & 0xFFFFU) + (~static_cast<u32>(tos) & 0xFFFFU) + marked;
  sum = (sum & 0xFFFFU) + (sum >> 16);
  sum = (sum & 0xFFFFU) + (sum >> 16);

  packet.set<packet::kIpv4Tos>(dropped ? tos : marked);
  packet.set<packet::kIpv4Checksum>(dropped ? checksum : static_cast<u16>(~sum));
  packet.set_result(remark::RemarkResult{dropped ? 1U : 0U});
}
