// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/types.hpp>

/// The field table: the parts of a packet that NFs declare in their hints and that plans move. IPv6 fields are in no
/// packet yet, as parse() does not recognize IPv6 headers. Kernels include this file too.
namespace catena::packet {

// clang-format off
/// X(id, name, constant, bytes, description). 0 bytes: variable length. Metadata fields are last.
#define CATENA_PACKET_FIELDS(X)                                                                           \
  X(0,  "eth.dst",         kEthDst,           6, "destination MAC address")                               \
  X(1,  "eth.src",         kEthSrc,           6, "source MAC address")                                    \
  X(2,  "eth.type",        kEthType,          0, "VLAN tags and EtherType")                               \
  X(3,  "ipv4.version",    kIpv4Version,      1, "version and header length")                             \
  X(4,  "ipv4.tos",        kIpv4Tos,          1, "DSCP and ECN")                                          \
  X(5,  "ipv4.length",     kIpv4Length,       2, "total length")                                          \
  X(6,  "ipv4.id",         kIpv4Id,           2, "identification")                                        \
  X(7,  "ipv4.fragment",   kIpv4Fragment,     2, "flags and fragment offset")                             \
  X(8,  "ipv4.ttl",        kIpv4Ttl,          1, "time to live")                                          \
  X(9,  "ipv4.protocol",   kIpv4Protocol,     1, "protocol")                                              \
  X(10, "ipv4.checksum",   kIpv4Checksum,     2, "header checksum")                                       \
  X(11, "ipv4.src",        kIpv4Src,          4, "source address")                                        \
  X(12, "ipv4.dst",        kIpv4Dst,          4, "destination address")                                   \
  X(13, "ipv4.options",    kIpv4Options,      0, "options")                                               \
  X(14, "ipv6.flow",       kIpv6Flow,         4, "not parsed yet: version, traffic class and flow label") \
  X(15, "ipv6.length",     kIpv6Length,       2, "not parsed yet: payload length")                        \
  X(16, "ipv6.next",       kIpv6Next,         1, "not parsed yet: next header")                           \
  X(17, "ipv6.hop_limit",  kIpv6HopLimit,     1, "not parsed yet: hop limit")                             \
  X(18, "ipv6.src",        kIpv6Src,         16, "not parsed yet: source address")                        \
  X(19, "ipv6.dst",        kIpv6Dst,         16, "not parsed yet: destination address")                   \
  X(20, "ipv6.extensions", kIpv6Extensions,   0, "not parsed yet: extension headers")                     \
  X(21, "l4.sport",        kL4Sport,          2, "TCP or UDP source port")                                \
  X(22, "l4.dport",        kL4Dport,          2, "TCP or UDP destination port")                           \
  X(23, "tcp.seq",         kTcpSeq,           4, "sequence number")                                       \
  X(24, "tcp.ack",         kTcpAck,           4, "acknowledgement number")                                \
  X(25, "tcp.flags",       kTcpFlags,         2, "data offset and flags")                                 \
  X(26, "tcp.window",      kTcpWindow,        2, "window")                                                \
  X(27, "tcp.urgent",      kTcpUrgent,        2, "urgent pointer")                                        \
  X(28, "tcp.options",     kTcpOptions,       0, "TCP options")                                           \
  X(29, "udp.length",      kUdpLength,        2, "UDP length")                                            \
  X(30, "l4.checksum",     kL4Checksum,       2, "TCP, UDP or ICMP checksum")                             \
  X(31, "icmp.header",     kIcmpHeader,       6, "ICMP type, code and bytes 4 to 7")                      \
  X(32, "payload",         kPayload,          0, "what follows the last parsed header")                   \
  X(33, "trailer",         kTrailer,          0, "Ethernet padding behind the datagram")                  \
  X(34, "meta.verdict",    kMetaVerdict,      1, "what the NFs decided so far")                           \
  X(35, "meta.port",       kMetaPort,         2, "output port")                                           \
  X(36, "meta.length",     kMetaLength,       2, "frame length in bytes")                                 \
  X(37, "meta.offset",     kMetaOffset,       2, "first byte of the frame in its slot")                   \
  X(38, "meta.layers",     kMetaLayers,       8, "where the headers are (packet::Layers)")
// clang-format on

enum Field : u8 {
#define CATENA_FIELD_ENUM(id, name, constant, bytes, help) constant = id,
  CATENA_PACKET_FIELDS(CATENA_FIELD_ENUM)
#undef CATENA_FIELD_ENUM
};
inline constexpr u32 kFieldCount = 39;

/// A set of fields as a 64-bit vector: bit i is field i.
using FieldSet = u64;
static_assert(kFieldCount <= 64 && kMetaLayers == kFieldCount - 1);

template <typename... Fields>
constexpr FieldSet fields(Fields... list) {
  return (FieldSet{0} | ... | (FieldSet{1} << list));
}

inline constexpr FieldSet kNoFields = 0;
inline constexpr FieldSet kAllFields = (FieldSet{1} << kFieldCount) - 1;
inline constexpr FieldSet kMetaFields = kAllFields & ~((FieldSet{1} << kMetaVerdict) - 1);
/// Every byte of the frame. An NF with all of these fields moves the frame as one piece.
inline constexpr FieldSet kFrameFields = kAllFields & ~kMetaFields;

constexpr bool contains(FieldSet set, Field field) { return ((set >> field) & 1U) != 0; }
constexpr bool has_frame(FieldSet set) { return (set & kFrameFields) == kFrameFields; }

/// Bytes of a fixed-size field; 0 for a variable-length field or an unknown number.
constexpr u32 field_size(u32 field) {
  constexpr u8 kSizes[kFieldCount] = {
#define CATENA_FIELD_SIZE(id, name, constant, bytes, help) bytes,
      CATENA_PACKET_FIELDS(CATENA_FIELD_SIZE)
#undef CATENA_FIELD_SIZE
  };
  return field < kFieldCount ? kSizes[field] : 0;
}

/// The plan's layout of one direction: the position of each fixed-size field of `set` as a column. The value is the
/// number of bytes per packet before the column. So the column of field f starts at
/// `padded_count * column_prefix(set, f)`. Wider fields come first. With a padded count that is a multiple of 16, every
/// column is aligned. kNoColumn: the field has no column in this set.
inline constexpr u32 kNoColumn = 0xFFFFU;
constexpr u32 column_prefix(FieldSet set, u32 field) {
  if (((set >> field) & 1U) == 0 || field_size(field) == 0) {
    return kNoColumn;
  }
  u32 prefix = 0;
  for (u32 other = 0; other < kFieldCount; ++other) {
    if (((set >> other) & 1U) != 0 &&
        (field_size(other) > field_size(field) || (field_size(other) == field_size(field) && other < field))) {
      prefix += field_size(other);
    }
  }
  return prefix;
}

/// Bytes per packet of all columns of `set`.
constexpr u32 columns_size(FieldSet set) {
  u32 size = 0;
  for (u32 field = 0; field < kFieldCount; ++field) {
    size += ((set >> field) & 1U) != 0 ? field_size(field) : 0;
  }
  return size;
}

/// First byte of a fixed-size header field, from the first byte of the frame. The field must exist in the packet.
constexpr u32 field_offset(u32 field, u32 l3, u32 l4) {
  switch (field) {
    case kEthDst:
      return 0;
    case kEthSrc:
      return 6;
    case kIpv4Version:
      return l3;
    case kIpv4Tos:
      return l3 + 1;
    case kIpv4Length:
      return l3 + 2;
    case kIpv4Id:
      return l3 + 4;
    case kIpv4Fragment:
      return l3 + 6;
    case kIpv4Ttl:
      return l3 + 8;
    case kIpv4Protocol:
      return l3 + 9;
    case kIpv4Checksum:
      return l3 + 10;
    case kIpv4Src:
      return l3 + 12;
    case kIpv4Dst:
      return l3 + 16;
    case kIpv6Flow:
      return l3;
    case kIpv6Length:
      return l3 + 4;
    case kIpv6Next:
      return l3 + 6;
    case kIpv6HopLimit:
      return l3 + 7;
    case kIpv6Src:
      return l3 + 8;
    case kIpv6Dst:
      return l3 + 24;
    case kL4Sport:
    case kIcmpHeader:
      return l4;
    case kL4Dport:
      return l4 + 2;
    case kTcpSeq:
      return l4 + 4;
    case kTcpAck:
      return l4 + 8;
    case kTcpFlags:
      return l4 + 12;
    case kTcpWindow:
      return l4 + 14;
    case kTcpUrgent:
      return l4 + 18;
    case kUdpLength:
      return l4 + 4;
    default:
      return 0;
  }
}

}  // namespace catena::packet
