// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/fields.hpp>
#include <catena/packet/layers.hpp>

/// The layout of a packet's bytes and fields in its slot, the same on the host and on devices. Kernels include this
/// file.
namespace catena::packet {

/// Bytes between two slots, and free bytes before a newly arrived frame (RTE_PKTMBUF_HEADROOM).
inline constexpr u32 kSlotBytes = 2048;
inline constexpr u32 kSlotHeadroom = 128;
/// Longest frame accepted by rx. The rest of the slot is for encapsulation.
inline constexpr u32 kMaxFrameBytes = kSlotBytes - 2 * kSlotHeadroom;

/// Host cache lines. A partial write to an uncached line waits for the rest of the line, so frames are written by whole
/// lines. The other bytes of these lines belong to the slot and are unused.
inline constexpr u32 kCacheLineBytes = 64;
static_assert(kSlotBytes % kCacheLineBytes == 0 && kSlotHeadroom % kCacheLineBytes == 0);
/// The begin of the cache line with a slot's byte, and the end of the last cache line of bytes up to `end`.
constexpr u32 cache_line_begin(u32 byte) { return byte / kCacheLineBytes * kCacheLineBytes; }
constexpr u32 cache_line_end(u32 end) { return (end + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes; }

/// Whether a packet with these LayerFlags has the header of `field` (a frame field).
constexpr bool has_field(u32 field, u32 flags) {
  if (field <= kEthType) {
    return true;
  }
  if (field <= kIpv4Options) {
    return (flags & kIpv4) != 0;
  }
  if (field <= kIpv6Extensions) {
    return false;
  }
  switch (field) {
    case kL4Sport:
    case kL4Dport:
      return (flags & kPorts) != 0;
    case kUdpLength:
      return (flags & kUdp) != 0;
    case kL4Checksum:
      return (flags & (kTcp | kUdp | kIcmp)) != 0;
    case kIcmpHeader:
      return (flags & kIcmp) != 0;
    default:
      return (flags & kTcp) != 0;
  }
}

/// First byte of a fixed-size field, from the first byte of the frame. Precondition: has_field(). ICMP's 6 bytes are
/// around its checksum: 2 at this offset, 4 at 4 more.
constexpr u32 field_offset(u32 field, Layers const& layers) {
  if (field == kL4Checksum) {
    const u32 at = (layers.flags & kTcp) != 0 ? 16U : (layers.flags & kUdp) != 0 ? 6U : 2U;
    return layers.l4 + at;
  }
  return field_offset(field, layers.l3, layers.l4);
}

}  // namespace catena::packet
