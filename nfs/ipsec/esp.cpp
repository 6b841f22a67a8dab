// SPDX-License-Identifier: Apache-2.0
#include "esp.hpp"

#include <cstring>

namespace catena::ipsec {
namespace {

constexpr std::uint8_t kEcnMask = 0x03;

/// Copies an L2 header; the usual one by a copy of fixed length, which costs next to nothing.
void copy_l2(std::uint8_t* target, const std::uint8_t* source, std::uint32_t length) {
  if (length == packet::kEthernetBytes) {
    std::memcpy(target, source, packet::kEthernetBytes);
  } else {
    std::memcpy(target, source, length);
  }
}

/// RFC 6040 section 4.2: what the ECN field of the inner packet becomes, by that field and the outer one. kLost: a mark
/// of congestion would be lost, so the packet must be.
constexpr std::uint8_t kLost = 4;
constexpr std::uint8_t kInnerEcn[4][4] = {
    // outer: not-ECT, ECT(1), ECT(0), CE
    {0, 0, 0, kLost},  // inner: not-ECT
    {1, 1, 1, 3},      // ECT(1)
    {2, 1, 2, 3},      // ECT(0)
    {3, 3, 3, 3},      // CE
};

void set_ecn(std::uint8_t* inner, std::uint8_t ecn) {
  const std::uint16_t before = packet::load_be16(inner);
  inner[1] = static_cast<std::uint8_t>((inner[1] & ~kEcnMask) | ecn);
  packet::store_be16(inner + 10,
                     packet::checksum_update(packet::load_be16(inner + 10), before, packet::load_be16(inner)));
}

}  // namespace

OuterHeaders::OuterHeaders(Association const& association)
    : front(front_bytes(association.udp.has_value())), policy(association.policy) {
  std::uint8_t* ip = bytes.data();
  ip[0] = 0x45;
  ip[8] = policy.ttl;
  ip[9] = association.udp ? packet::kProtocolUdp : packet::kProtocolEsp;
  packet::store_be32(ip + 12, association.source);
  packet::store_be32(ip + 16, association.destination);
  std::uint8_t* next = ip + kIpv4Bytes;
  if (association.udp) {
    packet::store_be16(next, association.udp->source);
    packet::store_be16(next + 2, association.udp->destination);
    next += kUdpBytes;  // the checksum stays 0: RFC 3948 section 2.1
  }
  packet::store_be32(next, association.spi);
  checksum = static_cast<std::uint32_t>(packet::checksum_add(ip, kIpv4Bytes));
}

std::uint8_t* encapsulate(packet::Packet const& packet, Aux const& aux, OuterHeaders const& outer) {
  std::uint8_t* frame = packet.frame();
  std::uint8_t* inner = frame + aux.l3;
  const std::uint8_t inner_tos = inner[1];
  const std::uint16_t inner_flags = packet::load_be16(inner + 6);

  copy_l2(frame - aux.shift, frame, aux.l3);
  std::uint8_t* ip = inner - aux.shift;
  std::memcpy(ip, outer.bytes.data(), outer.bytes.size());  // ends in front of the low half of the IV at the latest
  const HeaderPolicy& policy = outer.policy;
  const std::uint32_t total = aux.shift + std::uint32_t{aux.text_length} + cipher::kIcvBytes;
  const std::uint32_t tos = (inner_tos & policy.tos_keep) | policy.tos_set;
  const std::uint32_t id = aux.sequence & 0xFFFFU;
  const std::uint32_t flags = (inner_flags & policy.df_keep) | std::uint32_t{policy.df_set};
  ip[1] = static_cast<std::uint8_t>(tos);
  packet::store_be16(ip + 2, static_cast<std::uint16_t>(total));
  packet::store_be32(ip + 4, id << 16 | flags);
  packet::store_be16(ip + 10, packet::checksum_finish(std::uint64_t{outer.checksum} + tos + total + id + flags));
  std::uint8_t* esp = inner - cipher::kTextOffset;
  if (outer.front > front_bytes(false)) {
    packet::store_be16(esp - kUdpBytes + 4, static_cast<std::uint16_t>(total - kIpv4Bytes));
  }
  packet::store_be32(esp + 4, aux.sequence);
  packet::store_be32(esp + 8, aux.sequence_high);
  packet::store_be32(esp + 12, aux.sequence);

  const std::uint32_t pad = aux.text_length - kEspTrailerBytes - std::uint32_t{aux.inner_length};
  std::uint8_t* tail = inner + aux.inner_length;
  for (std::uint32_t i = 0; i < pad; ++i) {
    tail[i] = static_cast<std::uint8_t>(i + 1);
  }
  tail[pad] = static_cast<std::uint8_t>(pad);
  tail[pad + 1] = kNextHeaderIpv4;
  packet.set_extent(std::uint32_t{packet.offset()} - aux.shift, aux.l3 + total);
  return esp;
}

PacketStatus decapsulate(packet::Packet const& packet, Aux const& aux) {
  std::uint8_t* frame = packet.frame();
  std::uint8_t* outer = frame + aux.l3;
  std::uint8_t* inner = outer + aux.shift;
  const std::uint8_t* trailer = inner + aux.text_length - kEspTrailerBytes;
  if (trailer[1] == kNextHeaderDummy) {
    return kDummy;
  }
  const std::uint32_t pad = trailer[0];
  if (trailer[1] != kNextHeaderIpv4 || pad + kEspTrailerBytes + kIpv4Bytes > aux.text_length) {
    return kMalformedInner;
  }
  const std::uint32_t room = aux.text_length - kEspTrailerBytes - pad;
  const std::uint32_t header = (inner[0] & 0x0FU) * 4U;
  const std::uint32_t total = packet::load_be16(inner + 2);
  if ((inner[0] >> 4) != 4 || header < kIpv4Bytes || total < header || total > room) {
    return kMalformedInner;
  }
  const auto inner_ecn = static_cast<std::uint8_t>(inner[1] & kEcnMask);
  const std::uint8_t ecn = kInnerEcn[inner_ecn][outer[1] & kEcnMask];
  if (ecn == kLost) {
    return kCongested;
  }
  if (ecn != inner_ecn) {
    set_ecn(inner, ecn);
  }
  copy_l2(frame + aux.shift, frame, aux.l3);
  packet.set_extent(std::uint32_t{packet.offset()} + aux.shift, aux.l3 + total);
  return kDone;
}

}  // namespace catena::ipsec
