// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/layers.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

/// Header parsing, checksums and unaligned access on plain bytes. Thread rule: pure functions, any thread.
namespace catena::packet {

inline constexpr std::uint32_t kEthernetBytes = 14;
inline constexpr std::uint32_t kIpv4MinBytes = 20;
inline constexpr std::uint32_t kTcpMinBytes = 20;
inline constexpr std::uint32_t kUdpBytes = 8;
inline constexpr std::uint32_t kIcmpBytes = 8;

/// Big-endian loads and stores at any alignment.
inline std::uint16_t load_be16(const std::uint8_t* at) { return static_cast<std::uint16_t>((at[0] << 8) | at[1]); }
inline std::uint32_t load_be32(const std::uint8_t* at) {
  std::uint32_t value = 0;
  std::memcpy(&value, at, 4);
  return __builtin_bswap32(value);
}
inline void store_be16(std::uint8_t* at, std::uint16_t value) {
  at[0] = static_cast<std::uint8_t>(value >> 8);
  at[1] = static_cast<std::uint8_t>(value);
}
inline void store_be32(std::uint8_t* at, std::uint32_t value) {
  const std::uint32_t swapped = __builtin_bswap32(value);
  std::memcpy(at, &swapped, 4);
}

/// Parses an Ethernet II frame with up to two VLAN tags (see ether_type_of()) down to the TCP, UDP or ICMP header.
/// `length`: bytes of the frame, any value. Never reads past it. A frame with an incomplete IPv4 header, or with a
/// total length below the header's, is not IPv4. An incomplete TCP, UDP or ICMP header has no flag, and its bytes count
/// as payload. If the total length exceeds the frame (kTruncated), a header counts only if the frame contains it, TCP
/// options excepted (kSplitHeader); payload_length then counts the bytes in the frame.
Layers parse(const std::uint8_t* frame, std::uint32_t length);
/// Likewise for an IPv4 datagram without a frame: offsets are from its first byte.
Layers parse_ipv4(const std::uint8_t* datagram, std::uint32_t length);

/// Bytes of the frame's IPv4 datagram: its total length; with kTruncated, its bytes in the frame. `length`: bytes of
/// the frame. `layers`: its own, with kIpv4. Reads the frame, its total length, only with kSurplus.
inline std::uint32_t l3_length(const std::uint8_t* frame, std::uint32_t length, Layers const& layers) {
  const std::uint32_t to_payload_end = std::uint32_t{layers.payload} + layers.payload_length - layers.l3;
  if ((layers.flags & kSurplus) == 0) {
    return to_payload_end;
  }
  const std::uint32_t total = load_be16(frame + layers.l3 + 2);
  return std::max(to_payload_end, std::min(total, length - layers.l3));
}

struct Ports {
  std::uint16_t source;
  std::uint16_t destination;
};
/// The ports of the TCP or UDP header at `l4`. Its first four bytes must exist.
inline Ports load_ports(const std::uint8_t* l4) { return {load_be16(l4), load_be16(l4 + 2)}; }

/// The ports of a packet as far as a rule can know them. The header need not be complete.
struct ShownPorts {
  enum class State : std::uint8_t {
    kNone,    ///< no ports, nor can it overwrite the ports of its datagram; as PortsHeader::kNone
    kShown,   ///< the packet has the first four bytes of the TCP or UDP header
    kHidden,  ///< these bytes are missing, or it is a TCP fragment that begins at byte 8, inside the header
  };
  State state;
  Ports ports;  ///< if kShown
};
/// shown_ports() for a packet without kPorts.
ShownPorts ports_of_cut_header(const std::uint8_t* frame, Layers const& layers);
/// `layers`: the result of parse() for the frame.
inline ShownPorts shown_ports(const std::uint8_t* frame, Layers const& layers) {
  if ((layers.flags & kPorts) != 0) {
    return {ShownPorts::State::kShown, load_ports(frame + layers.l4)};
  }
  return ports_of_cut_header(frame, layers);
}

/// RFC 1071 sum of `length` bytes, not folded and not complemented; `start` continues another sum. An odd last byte
/// is padded with zero.
std::uint64_t checksum_add(const std::uint8_t* bytes, std::size_t length, std::uint64_t start = 0);
/// Folds and complements: the value to store in the header.
std::uint16_t checksum_finish(std::uint64_t sum);
/// RFC 1624 equation 3: the checksum after one 16-bit word of the covered data changed.
inline std::uint16_t checksum_update(std::uint16_t checksum, std::uint16_t old_word, std::uint16_t new_word) {
  std::uint32_t sum = static_cast<std::uint16_t>(~checksum) +
                      static_cast<std::uint32_t>(static_cast<std::uint16_t>(~old_word)) + new_word;
  sum = (sum & 0xFFFFU) + (sum >> 16);
  sum = (sum & 0xFFFFU) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

}  // namespace catena::packet
