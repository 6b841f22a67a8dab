// SPDX-License-Identifier: Apache-2.0
#include "stack/tcp/segment_check.hpp"

#include <lwip/priv/tcp_priv.h>

namespace catena::stack {
namespace {

constexpr u8_t kEndOfOptions = 0;
constexpr u8_t kNoOperation = 1;

SegmentVerdict check_reset(tcp_pcb const& pcb, u32_t number) {
  if (pcb.state == TIME_WAIT) {
    return SegmentVerdict::kDrop;  // RFC 1337
  }
  if (number == pcb.rcv_nxt) {
    return SegmentVerdict::kProcess;
  }
  const bool is_in_window = TCP_SEQ_GT(number, pcb.rcv_nxt) && TCP_SEQ_LT(number, pcb.rcv_nxt + pcb.rcv_wnd);
  return is_in_window ? SegmentVerdict::kChallenge : SegmentVerdict::kDrop;
}

bool has_queued_fin(tcp_pcb const& pcb) {
  tcp_seg const* last = pcb.ooseq;
  while (last != nullptr && last->next != nullptr) {
    last = last->next;
  }
  return last != nullptr && (TCPH_FLAGS(last->tcphdr) & TCP_FIN) != 0;
}

/// Whether lwIP can queue the data; see the assertions about rcv_wnd in tcp_receive().
bool fits_window(tcp_pcb const& pcb, u32_t begin, u32_t data_end, u32_t end) {
  const u32_t edge = pcb.rcv_nxt + pcb.rcv_wnd;
  if (TCP_SEQ_GT(begin, pcb.rcv_nxt)) {
    // the window of a connection may be smaller than that in its SYN-RECEIVED
    if (pcb.state == SYN_RCVD || TCP_SEQ_GT(end, edge)) {
      return false;
    }
  }
  // data over a queued FIN takes the FIN to its own end, which may lie beyond the window then
  return TCP_SEQ_LT(data_end, edge) || !has_queued_fin(pcb);
}

}  // namespace

SegmentVerdict check_segment(tcp_pcb const& pcb, tcp_hdr const& header, u16_t data_bytes) {
  const auto flags = TCPH_FLAGS(&header);
  const u32_t begin = header.seqno;
  const u32_t data_end = begin + data_bytes;
  const u32_t end = data_end + ((flags & (TCP_SYN | TCP_FIN)) != 0 ? 1U : 0U);
  if ((flags & TCP_RST) != 0) {
    return check_reset(pcb, begin);
  }
  if ((flags & TCP_SYN) != 0) {
    if (pcb.state == SYN_RCVD) {  // lwIP answers a copy of the first SYN
      return (flags & TCP_ACK) != 0 ? SegmentVerdict::kDrop : SegmentVerdict::kProcess;
    }
    return SegmentVerdict::kChallenge;
  }
  if (TCP_SEQ_LT(end, pcb.rcv_nxt) || TCP_SEQ_GT(begin, pcb.rcv_nxt + pcb.rcv_wnd)) {
    // a peer that sends data again needs each ACK
    return data_bytes > 0 ? SegmentVerdict::kAcknowledge : SegmentVerdict::kChallenge;
  }
  if ((flags & TCP_ACK) == 0) {
    return SegmentVerdict::kDrop;
  }
  if (pcb.state >= ESTABLISHED &&
      (TCP_SEQ_LT(header.ackno, pcb.lastack - pcb.snd_wnd_max) || TCP_SEQ_GT(header.ackno, pcb.snd_nxt))) {
    return SegmentVerdict::kChallenge;  // RFC 5961, section 5
  }
  return end == begin || fits_window(pcb, begin, data_end, end) ? SegmentVerdict::kProcess : SegmentVerdict::kDrop;
}

void cut_malformed(HeaderOptions const& options) {
  const u16_t bytes = options.bytes();
  for (u16_t at = 0; at < bytes && options.at(at) != kEndOfOptions;) {
    if (options.at(at) == kNoOperation) {
      ++at;
      continue;
    }
    const bool has_length = at + 1 < bytes;
    const u8_t length = has_length ? options.at(static_cast<u16_t>(at + 1)) : u8_t{0};
    if (length < 2 || at + length > bytes) {
      options.at(at) = kEndOfOptions;
      return;
    }
    at = static_cast<u16_t>(at + length);
  }
}

void hide(HeaderOptions const& options) {
  if (options.bytes() > 0) {
    options.at(0) = kEndOfOptions;
  }
}

}  // namespace catena::stack
