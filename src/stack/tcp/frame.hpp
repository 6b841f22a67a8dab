// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/headers.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

/// Headers of Ethernet frames with IPv4 and IPv6 packets. Any bytes may be parsed.
namespace catena::stack {

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::uint16_t kTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kTypeIpv6 = 0x86DD;
inline constexpr std::uint8_t kTcpProtocol = 6;
inline constexpr std::uint8_t kIcmpv6Protocol = 58;
inline constexpr std::size_t kTcpHeaderBytes = 20;  ///< without options
inline constexpr std::size_t kTcpChecksumAt = 16;   ///< in the TCP header

inline const std::uint8_t* octets(const std::byte* at) { return reinterpret_cast<const std::uint8_t*>(at); }
inline std::uint16_t load_be16(const std::byte* at) { return packet::load_be16(octets(at)); }
inline std::uint32_t load_be32(const std::byte* at) { return packet::load_be32(octets(at)); }

/// The upper-layer header of an IP packet.
struct Transport {
  std::uint8_t protocol = 0;
  bool is_v4 = false;
  std::size_t offset = 0;  ///< in the frame
};
/// Walks the IPv4 options or IPv6 extension headers. nullopt: no IP packet, a fragment, or headers that reach beyond
/// the frame.
std::optional<Transport> find_transport(std::span<const std::byte> frame);

/// A TCP segment in a frame, and the numbers that identify its connection.
struct Segment {
  std::size_t tcp = 0;  ///< offset of the TCP header
  bool is_v4 = false;
  std::array<std::uint32_t, 4> remote = {};  ///< network order; IPv4 has the first word alone
  std::uint16_t remote_port = 0;
  std::uint16_t local_port = 0;
};
/// `is_incoming`: the remote end is the source. nullopt: find_transport() finds no TCP header, or not all of it.
std::optional<Segment> find_segment(std::span<const std::byte> frame, bool is_incoming);

/// One's complement sum of the pseudo header (RFC 9293, 3.1), not folded. `length`: bytes of TCP header and data.
std::uint64_t pseudo_header_sum(std::span<const std::byte> frame, bool is_v4, std::size_t length);

/// Whether the TCP checksum of an IP packet is right. True for frames without TCP.
bool has_right_checksum(std::span<const std::byte> frame);

}  // namespace catena::stack
