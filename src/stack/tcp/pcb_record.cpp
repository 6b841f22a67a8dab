// SPDX-License-Identifier: Apache-2.0
#include "stack/tcp/pcb_record.hpp"

#include <lwip/priv/tcp_priv.h>

#include <algorithm>

namespace catena::stack {
namespace {

u8_t record_slot = 0;

void on_destroyed(u8_t /*slot*/, void* data) {
  auto& record = *static_cast<PcbRecord*>(data);
  if (record.is_gone != nullptr) {
    *record.is_gone = true;
  }
  record.list->erase(record.self);
}
constexpr tcp_ext_arg_callbacks kOfConnections{&on_destroyed, nullptr};

err_t on_passive_open(u8_t slot, tcp_pcb_listen* listener, tcp_pcb* pcb) {
  auto& half_open = *static_cast<PcbRecord::List*>(listener->ext_args[slot].data);
  half_open.push_back({.pcb = pcb, .list = &half_open, .self = {}});
  half_open.back().self = std::prev(half_open.end());
  tcp_ext_arg_set(pcb, slot, &half_open.back());
  tcp_ext_arg_set_callbacks(pcb, slot, &kOfConnections);
  return ERR_OK;
}
constexpr tcp_ext_arg_callbacks kOfListeners{nullptr, &on_passive_open};

}  // namespace

void start_records() { record_slot = tcp_ext_arg_alloc_id(); }

void record_connections(tcp_pcb& listener, PcbRecord::List& half_open) {
  tcp_ext_arg_set(&listener, record_slot, &half_open);
  tcp_ext_arg_set_callbacks(&listener, record_slot, &kOfListeners);
}

PcbRecord* record_of(tcp_pcb const& pcb) {
  return pcb.state == LISTEN ? nullptr : static_cast<PcbRecord*>(tcp_ext_arg_get(&pcb, record_slot));
}

void move_to(PcbRecord& record, PcbRecord::List& list) {
  list.splice(list.end(), *record.list, record.self);
  record.list = &list;
}

bool is_stalled(PcbRecord& record, u32_t limit) {
  constexpr u32_t kLeastProgress = 536;
  tcp_pcb const& pcb = *record.pcb;
  if (pcb.state == SYN_RCVD || (pcb.unacked == nullptr && pcb.unsent == nullptr)) {
    record.is_timed = false;
    return false;
  }
  if (!record.is_timed || TCP_SEQ_GEQ(pcb.lastack, record.progress_goal)) {
    record.is_timed = true;
    record.progress_goal = pcb.lastack + std::min(kLeastProgress, pcb.snd_lbb - pcb.lastack);
    record.progress_ticks = tcp_ticks;
    return false;
  }
  return tcp_ticks - record.progress_ticks > limit;
}

}  // namespace catena::stack
