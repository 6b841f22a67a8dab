// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ipsec.layout.hpp"
#include "sa.hpp"

#include <catena/packet/batch.hpp>

#include <array>
#include <cstdint>

/// ESP tunnel mode on plain bytes, without the cryptography: sizes, headers, padding (RFC 4303, RFC 3948).
/// Thread rule: pure functions, any thread.
namespace catena::ipsec {

/// Bytes of the text for a datagram of `inner_length` bytes: padded so that the text ends with the two trailer bytes at
/// a multiple of 4 (RFC 4303 section 2.4).
constexpr std::uint32_t text_length(std::uint32_t inner_length) {
  return (inner_length + kEspTrailerBytes + 3) & ~std::uint32_t{3};
}

/// Bytes between the outer and the inner IPv4 header of an encapsulated packet.
constexpr std::uint32_t front_bytes(bool udp) { return kIpv4Bytes + (udp ? kUdpBytes : 0) + cipher::kTextOffset; }

/// The outer headers of one association up to the SPI, complete except for the per-packet values.
struct OuterHeaders {
  explicit OuterHeaders(Association const& association);

  std::array<std::uint8_t, kIpv4Bytes + kUdpBytes + 4> bytes{};  ///< IPv4, UDP if any, SPI; without UDP 8 bytes more
  std::uint32_t front = 0;                                       ///< front_bytes()
  std::uint32_t checksum = 0;                                    ///< RFC 1071 sum of the constant IPv4 words
  HeaderPolicy policy;
};

/// Writes everything except the ciphertext and the ICV around the packet's datagram. The L2 and outer headers before it
/// overwrite the old L2 header; padding and trailer after it overwrite Ethernet padding. The frame's bounds move.
/// Layers are not parsed again.
/// The outer IPv4 identification is the low half of the sequence number; the IV is the whole sequence number (RFC 3686
/// section 3.1: unique under one key). ECN and, by policy, DSCP and DF are copied from the inner header.
/// Precondition: aux filled by Encryptor::prepare(); sufficient headroom and tailroom.
/// Returns the ESP header. The text starts kTextOffset bytes after it, the ICV text_length bytes after the text's
/// start.
std::uint8_t* encapsulate(packet::Packet const& packet, Aux const& aux, OuterHeaders const& outer);

/// The Layers of a frame made by encapsulate(), as packet::parse() would return them.
inline packet::Layers layers_after_encapsulation(Aux const& aux) {
  const bool udp = aux.shift > front_bytes(false);
  const std::uint32_t l4 = aux.l3 + kIpv4Bytes;
  const std::uint32_t total = aux.shift + std::uint32_t{aux.text_length} + cipher::kIcvBytes;
  const std::uint32_t udp_bytes = udp ? kUdpBytes : 0;
  const std::uint32_t transport = udp ? packet::kUdp | packet::kPorts : 0U;
  return {.l3 = static_cast<std::uint8_t>(aux.l3),
          .l4 = static_cast<std::uint8_t>(l4),
          .payload = static_cast<std::uint8_t>(l4 + udp_bytes),
          .family = packet::AddressFamily::kIpv4,
          .flags = static_cast<std::uint16_t>(packet::kIpv4 | transport),
          .payload_length = static_cast<std::uint16_t>(total - kIpv4Bytes - udp_bytes)};
}

/// Removes the outer headers of a packet whose text has been decrypted in place. The L2 header moves directly before
/// the inner datagram, padding is cut off, and the inner ECN field is set by RFC 6040 section 4.2. Layers are not
/// parsed again.
/// Returns kDone; else nothing is changed: kDummy for next header 59, kCongested for a congestion mark on a packet that
/// cannot carry it, kMalformedInner for another next header than IPv4, a pad length that exceeds the text, or an inner
/// IPv4 header that does not fit. Bytes between the inner datagram and the padding (RFC 4303 section 2.7) are allowed
/// and cut off.
PacketStatus decapsulate(packet::Packet const& packet, Aux const& aux);

}  // namespace catena::ipsec
