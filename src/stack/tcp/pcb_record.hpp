// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lwip/tcp.h>

#include <list>

namespace catena::stack {

/// State of a connection beside lwIP's PCB. lwIP's extension argument refers to it; it lives as
/// long as the PCB.
struct PcbRecord {
  using List = std::list<PcbRecord>;

  tcp_pcb* pcb;
  List* list;  ///< holds it; oldest first
  List::iterator self;
  bool* is_gone = nullptr;  ///< set at the end of the PCB, unless null

  bool is_timed = false;      ///< data or a FIN waits for the peer's ACK
  u32_t progress_goal = 0;    ///< an ACK of this number is progress
  u32_t progress_ticks = 0;   ///< tcp_ticks of the last progress
  u32_t challenge_ticks = 0;  ///< tcp_ticks of the last challenge ACK
};

/// Once in a process, before the first listener.
void start_records();
/// Half-open connections of `listener` get a record at the end of `half_open`, which outlives the listener.
void record_connections(tcp_pcb& listener, PcbRecord::List& half_open);
/// Null: the PCB is a listener's.
PcbRecord* record_of(tcp_pcb const& pcb);
/// To the end of `list`.
void move_to(PcbRecord& record, PcbRecord::List& list);

/// Whether the peer has acknowledged too little for `limit` ticks: its window is closed, or it is gone. A peer shall
/// acknowledge 536 bytes, or all there is, within the limit.
bool is_stalled(PcbRecord& record, u32_t limit);

}  // namespace catena::stack
