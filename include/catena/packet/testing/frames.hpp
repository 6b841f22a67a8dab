// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/headers.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

/// Builds IPv4 frames for tests, byte by byte, and reads and changes their fields. Checksums follow RFC 1071 without
/// code of packet/headers.hpp, so a test may judge an NF by them. Addresses and ports are in host order. Functions with
/// a frame argument expect a frame built here, without VLAN tag and IPv4 options unless documented. Thread rule: pure
/// functions, any thread.
namespace catena::packet::testing {

using Frame = std::vector<std::uint8_t>;

inline constexpr std::size_t kL3 = 14;  ///< offset of the IPv4 header
inline constexpr std::size_t kL4 = 34;  ///< offset of the header after it

/// TCP flags.
inline constexpr std::uint8_t kFin = 0x01;
inline constexpr std::uint8_t kSyn = 0x02;
inline constexpr std::uint8_t kRst = 0x04;
inline constexpr std::uint8_t kPsh = 0x08;
inline constexpr std::uint8_t kAck = 0x10;

// ---- Building. Lengths and checksums are right.

/// An IPv4 datagram of any protocol; `payload`: all bytes after its header.
Frame make_datagram(std::uint8_t protocol, std::uint32_t source, std::uint32_t destination,
                    std::span<const std::uint8_t> payload, std::uint8_t ttl = 64);
/// A TCP segment (PSH and ACK), or a datagram of another protocol with a header like that of UDP.
Frame make_frame(std::uint8_t protocol, std::uint32_t source, std::uint32_t destination, std::uint16_t source_port,
                 std::uint16_t destination_port, std::string_view payload, std::uint8_t ttl = 64);
/// A TCP segment with these flags.
Frame make_segment(std::uint32_t source, std::uint32_t destination, std::uint16_t source_port,
                   std::uint16_t destination_port, std::uint8_t flags, std::string_view payload = "");
/// An ICMP message. `rest`: bytes 4 to 7 of its header.
Frame make_icmp(std::uint8_t type, std::uint8_t code, std::uint32_t source, std::uint32_t destination,
                std::uint32_t rest, std::span<const std::uint8_t> body);
/// An ICMP echo: a request (`type` 8) or a reply (0).
Frame make_echo(std::uint32_t source, std::uint32_t destination, std::uint16_t identifier, std::uint16_t sequence,
                std::string_view payload, std::uint8_t type = 8);
/// The ICMP error from a host at `from` to the source of `frame`. It quotes the IPv4 header, which may have options,
/// and `quoted` bytes after it, or all if the frame has fewer. The code is 3, port unreachable, for type 3, else 0.
Frame make_error(std::uint8_t type, std::uint32_t from, Frame const& frame, std::size_t quoted = 8);
/// The quote of make_error(): a view of `frame`.
std::span<const std::uint8_t> quote_of(Frame const& frame, std::size_t quoted);
/// An ARP request (RFC 826), padded.
Frame make_arp_request(std::uint32_t sender, std::uint32_t wanted);

// ---- Changing a header. Checksums stay unchanged: with_header_checksum() or with_checksums() sets them.

/// With `tags` VLAN tags (802.1Q) before the EtherType. `frame` may already have tags.
Frame with_vlan(Frame frame, unsigned tags);
/// With `words` words (0 to 10) of no-operation options after the IPv4 header.
Frame with_options(Frame frame, unsigned words);
/// With `word` as flags and offset in the IPv4 header.
Frame with_fragment(Frame frame, std::uint16_t word);
/// With `tos` as DSCP and ECN bits in the IPv4 header.
Frame with_tos(Frame frame, std::uint8_t tos);
/// Cut, or padded with zeros, to `bytes` bytes after the IPv4 header; frame and datagram end there.
Frame ends_after(Frame frame, std::size_t bytes);

// ---- Changing a datagram. Checksums are right afterwards.

/// With other addresses and ports; for an ICMP echo `source_port` is the identifier. `frame` may have IPv4 options. A
/// UDP checksum of 0 stays.
Frame with_ends(Frame frame, std::uint32_t source, std::uint16_t source_port, std::uint32_t destination,
                std::uint16_t destination_port);
/// The answer to TCP, UDP or an ICMP echo request: the same bytes, back to the sender.
Frame answer_to(Frame const& frame);
/// The fragment (RFC 791) with bytes [begin, end) after the IPv4 header. `begin`: a multiple of 8. The fragment is the
/// last one if `end` is at or beyond the end of the frame.
Frame fragment_of(Frame const& frame, std::size_t begin, std::size_t end);
/// Both fragments of a datagram with identification `id`; the first has `first_bytes` bytes, a multiple of 8.
std::pair<Frame, Frame> in_two(Frame frame, std::uint16_t id, std::size_t first_bytes);

// ---- Checksums. `l3`: offset of the IPv4 header, which may have options.

/// RFC 1071: the complement of the one's complement sum of the big-endian words of `bytes` and of `start`. 0 over bytes
/// including their own right checksum. An odd last byte is padded with zero.
std::uint16_t internet_checksum(std::span<const std::uint8_t> bytes, std::uint32_t start = 0);
/// With the right checksum in the IPv4 header.
Frame with_header_checksum(Frame frame, std::size_t l3 = kL3);
/// With the right checksums in the IPv4 header and in the whole TCP, UDP or ICMP message after it.
Frame with_checksums(Frame frame, std::size_t l3 = kL3);
/// Whether every checksum of an unfragmented TCP, UDP or ICMP datagram is right, including the quoted IPv4 header of an
/// ICMP error. A UDP checksum of 0 is right. `frame` may have IPv4 options.
bool has_right_checksums(Frame const& frame);

// ---- Reading.

inline std::uint32_t source_of(Frame const& frame) { return packet::load_be32(&frame[kL3 + 12]); }
inline std::uint32_t destination_of(Frame const& frame) { return packet::load_be32(&frame[kL3 + 16]); }
inline std::uint16_t source_port_of(Frame const& frame) { return packet::load_be16(&frame[kL4]); }
inline std::uint16_t destination_port_of(Frame const& frame) { return packet::load_be16(&frame[kL4 + 2]); }

}  // namespace catena::packet::testing
