// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/testing/harness.hpp>

#include <cstdint>
#include <vector>

/// Frames that tests of NFs share, and changes to frames.
namespace catena::nf::testing {

/// The frame with `tags` VLAN tags (802.1Q) in front of its EtherType.
Frame with_vlan(Frame frame, unsigned tags);
/// The frame with `words` words (0 to 10) of no-operation options after its IPv4 header. Precondition: no options yet,
/// no VLAN tag. The header checksum is not corrected.
Frame with_options(Frame frame, unsigned words);
/// The frame with this flags-and-offset word in its IPv4 header; no VLAN tag; the header checksum is not corrected.
Frame with_fragment(Frame frame, std::uint16_t field);
/// An ICMP echo request with right checksums. Addresses in host order.
Frame make_echo(std::uint32_t src, std::uint32_t dst, std::uint16_t identifier, std::uint16_t sequence,
                std::string_view payload);

/// An ARP request (RFC 826), padded. Addresses in host order.
Frame make_arp_request(std::uint32_t sender, std::uint32_t wanted);

/// Frames of many kinds: TCP, UDP, ICMP, ESP, IPv6, ARP, tagged, with options, fragmented, cut short.
std::vector<Frame> frames_of_every_kind();
/// Those, cut at every length up to 64 bytes, and with extreme values in each byte of their headers.
std::vector<Frame> hostile_frames();

}  // namespace catena::nf::testing
