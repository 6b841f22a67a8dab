// SPDX-License-Identifier: Apache-2.0
#include "meter.hpp"

#include <algorithm>
#include <array>

namespace catena::monitor {
namespace {

// Packets whose table entries are fetched side by side: enough to hide the memory's latency.
constexpr std::size_t kChunk = 32;

// Idle flows that one packet ends at most. A packet begins one flow at most, so the table empties, and no packet waits
// for a million exports after a pause.
constexpr std::uint32_t kExpiriesPerPacket = 4;

constexpr std::uint64_t kSecondNs = 1'000'000'000;

}  // namespace

void Meter::observe(std::span<const Observation> packets) {
  std::array<std::uint64_t, kChunk> hashes;
  while (!packets.empty()) {
    const auto chunk = packets.first(std::min(kChunk, packets.size()));
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      hashes[i] = table_.hash(chunk[i].key);
      table_.prefetch_head(hashes[i]);
    }
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      table_.prefetch_flow(hashes[i]);
    }
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      table_.prefetch_order(chunk[i].key, hashes[i]);
    }
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      observe_one(chunk[i], hashes[i]);
    }
    packets = packets.subspan(chunk.size());
  }
}

void Meter::observe_one(Observation const& packet, std::uint64_t hash) {
  advance_clock(packet.arrival_ns);
  expire(kExpiriesPerPacket);
  std::uint32_t flow = table_.find(packet.key, hash);
  if (flow == FlowTable::kNone) {
    ++counts_.flows;
    flow = begin_flow(packet, hash);
  } else if (is_idle(flow)) {
    end_flow(flow, EndReason::kIdle);
    ++counts_.flows;
    flow = begin_flow(packet, hash);
  } else if (is_due(flow)) {
    end_flow(flow, EndReason::kActive);
    flow = begin_flow(packet, hash);
  } else {
    table_.touch(flow, clock_ns());
  }
  Flow& counters = table_[flow];
  ++counters.packets;
  counters.bytes += packet.length;
  counters.first_ns = std::min(counters.first_ns, packet.arrival_ns);
  counters.last_ns = std::max(counters.last_ns, packet.arrival_ns);
  counters.tcp_flags |= packet.tcp_flags;
}

void Meter::advance_clock(std::uint64_t stamp_ns) {
  const std::uint64_t now_ns = clock_.advance(stamp_ns);
  if (now_ns - second_ns_ >= kSecondNs) {
    second_ns_ = now_ns;
    sink_->second_passed(now_ns);
  }
}

void Meter::tick(std::uint64_t now_ns) {
  advance_clock(now_ns);
  expire(kExpiriesPerTick);
}

void Meter::expire(std::uint32_t at_most) {
  for (std::uint32_t ended = 0; ended < at_most; ++ended) {
    const std::uint32_t oldest = table_.oldest();
    if (oldest == FlowTable::kNone || !is_idle(oldest)) {
      return;
    }
    end_flow(oldest, EndReason::kIdle);
  }
}

std::uint32_t Meter::begin_flow(Observation const& packet, std::uint64_t hash) {
  if (table_.full()) {
    ++counts_.evicted;
    end_flow(table_.oldest(), EndReason::kLackOfResources);
  }
  const std::uint32_t flow = table_.insert(packet.key, hash, clock_ns());
  table_[flow].tos = packet.tos;
  table_[flow].first_ns = packet.arrival_ns;
  counts_.peak = std::max<std::uint64_t>(counts_.peak, table_.size());
  return flow;
}

void Meter::end_flow(std::uint32_t flow, EndReason reason) {
  Flow const& counters = table_[flow];
  ++counts_.exported;
  sink_->add({.key = counters.key,
              .packets = counters.packets,
              .bytes = counters.bytes,
              .first_ns = counters.first_ns,
              .last_ns = counters.last_ns,
              .tcp_flags = counters.tcp_flags,
              .tos = counters.tos,
              .end_reason = reason},
             clock_ns());
  table_.erase(flow);
}

void Meter::finish(std::uint64_t latest_ns) {
  const std::uint64_t end_ns = std::max(clock_ns(), latest_ns);
  while (table_.size() > 0) {
    const std::uint32_t oldest = table_.oldest();
    const bool is_idle = end_ns - table_.used_ns(oldest) >= timeouts_.idle_ns;
    end_flow(oldest, is_idle ? EndReason::kIdle : EndReason::kForcedEnd);
  }
}

}  // namespace catena::monitor
