// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lwip/prot/tcp.h>
#include <lwip/tcp.h>

/// Checks of incoming segments before lwIP's own: the order of RFC 9293, 3.10.7.4, with the rules of RFC 5961 against
/// guessed segments, and bounds whose violation would end the process by an assertion of lwIP.
namespace catena::stack {

enum class SegmentVerdict {
  kProcess,
  kDrop,
  kAcknowledge,  ///< drop; an ACK tells the peer our numbers
  kChallenge,    ///< as kAcknowledge, limited in rate (RFC 5961, section 7)
};

/// For a connection in SYN-RECEIVED or later. `header`: numbers in host order. `data_bytes`: of the segment.
SegmentVerdict check_segment(tcp_pcb const& pcb, tcp_hdr const& header, u16_t data_bytes);

/// The options of a header, which lwIP may have in two parts.
struct HeaderOptions {
  u8_t* first;
  u16_t first_bytes;
  u8_t* second;
  u16_t second_bytes;
  u16_t bytes() const { return static_cast<u16_t>(first_bytes + second_bytes); }
  u8_t& at(u16_t offset) const { return offset < first_bytes ? first[offset] : second[offset - first_bytes]; }
};
/// Ends the options at the first one with an impossible length: lwIP would read beyond them (RFC 9293, MUST-7).
void cut_malformed(HeaderOptions const& options);
/// Ends the options at their beginning. lwIP takes the MSS from any segment; the peer may set it in its first SYN
/// alone.
void hide(HeaderOptions const& options);

}  // namespace catena::stack
