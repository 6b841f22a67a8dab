// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lwip/tcp.h>

/// Loss recovery by selective acknowledgements (RFC 2018, RFC 6675), which lwIP sends but does not read. lwIP calls it
/// at its hook for each segment of a known connection.
namespace catena::stack {

/// Prepares recovery; once in a process, before the first connection.
void start_sack();

/// Marks segments by the blocks in the options, and queues lost segments for retransmission; lwIP sends them after it
/// has processed this segment. `options`: the bytes of the header's options, which lwIP may have in two parts.
void take_sack(tcp_pcb& pcb, u32_t acknowledged, const u8_t* options, u16_t option_bytes, const u8_t* rest,
               u16_t rest_bytes);

/// Retransmissions by time, before each tick of lwIP's timers: at least 200 ms after a segment was sent, as Linux;
/// peers delay ACKs by 40 ms. Where the last segments of a flight may be lost, of which no block tells, sends the last
/// one again, once and earlier (a tail loss probe, RFC 8985, section 7). Before a time-out, puts segments in order.
void prepare_retransmission(tcp_pcb& pcb);

/// lwIP appends bytes and a FIN to the last segment of `unsent`. After a loss that may be one to be sent again, with
/// later numbers in `unacked`: the bytes would get its numbers. While an object of this class exists, these segments
/// are out of the way, and lwIP sends nothing on the connection: call tcp_output() afterwards.
class Appending {
 public:
  explicit Appending(tcp_pcb& pcb);
  ~Appending();
  Appending(Appending const&) = delete;
  Appending& operator=(Appending const&) = delete;

 private:
  tcp_pcb* pcb_;
  tcp_seg* lost_ = nullptr;  ///< the first one out of the way
  bool is_lent_ = false;     ///< `unacked` has them: lwIP asserts that one of both lists has segments
  tcp_pcb* input_;           ///< the connection of the segment that lwIP processes, on which it sends nothing yet
};

}  // namespace catena::stack
