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

/// Retransmissions by time: at least 200 ms after a segment was sent, as Linux; peers delay ACKs by 40 ms. Before the
/// timers of lwIP.
void limit_timeout(tcp_pcb& pcb);

}  // namespace catena::stack
