// SPDX-License-Identifier: Apache-2.0
#include "meter.hpp"

#include <catena/core/time.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace catena::monitor {
namespace {

// Packets whose table entries are fetched side by side: enough to hide the memory's latency.
constexpr std::size_t kChunk = 32;

// Idle flows that one packet ends at most. A packet begins one flow at most, so the table empties, and no packet waits
// for a million exports after a pause.
constexpr std::uint32_t kExpiriesPerPacket = 4;

}  // namespace

template <typename Counted>
void Meter::fetch(std::span<const Counted> of, std::uint64_t* hashes) const {
  for (std::size_t i = 0; i < of.size(); ++i) {
    hashes[i] = table_.hash(of[i].key);
    table_.prefetch_head(hashes[i]);
  }
  for (std::size_t i = 0; i < of.size(); ++i) {
    table_.prefetch_flow(hashes[i]);
  }
  for (std::size_t i = 0; i < of.size(); ++i) {
    table_.prefetch_order(of[i].key, hashes[i]);
  }
}

void Meter::observe(std::span<const Observation> packets) {
  std::array<std::uint64_t, kChunk> hashes;
  while (!packets.empty()) {
    const auto chunk = packets.first(std::min(kChunk, packets.size()));
    fetch(chunk, hashes.data());
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      begin_packet(chunk[i].arrival_ns);
      count(sum_of(chunk[i]), enter(chunk[i].key, chunk[i].tos, hashes[i]));
    }
    packets = packets.subspan(chunk.size());
  }
}

void Meter::observe(SummedBatch const& batch, ReadPacket const& read) {
  const std::uint64_t end_ns = clock_after(batch.stamps_ns);
  if (!can_add_up(batch, end_ns)) {
    observe_one_by_one(static_cast<std::uint32_t>(batch.stamps_ns.size()), read);
    return;
  }
  const std::span<const FlowSum> sums = batch.sums;
  sum_hashes_.resize(sums.size());
  sum_flows_.resize(sums.size());
  for (std::uint32_t i = 0; i < batch.stamps_ns.size(); ++i) {
    const std::uint32_t number = batch.sum_of_packet[i];
    FlowSum const& sum = sums[number];
    begin_packet(batch.stamps_ns[i]);
    if (i == sum.first) {
      if (number % kChunk == 0) {
        fetch(sums.subspan(number, std::min(kChunk, sums.size() - number)), &sum_hashes_[number]);
      }
      const std::uint32_t flow = enter(sum.key, sum.tos, sum_hashes_[number]);
      const bool is_exact = !is_due(flow, end_ns);
      count(is_exact ? sum : sum_of(read(i)), flow);
      sum_flows_[number] = is_exact ? flow : FlowTable::kNone;
    } else if (sum_flows_[number] == FlowTable::kNone) {
      const Observation packet = read(i);
      count(sum_of(packet), enter(packet.key, packet.tos, sum_hashes_[number]));
    } else if (i == sum.last) {
      table_.touch(sum_flows_[number], clock_ns());
    }
  }
}

void Meter::observe_one_by_one(std::uint32_t packets, ReadPacket const& read) {
  std::array<Observation, kChunk> chunk;
  for (std::uint32_t first = 0; first < packets; first += kChunk) {
    const std::size_t count = std::min<std::size_t>(kChunk, packets - first);
    for (std::uint32_t i = 0; i < count; ++i) {
      chunk[i] = read(first + i);
    }
    observe(std::span(chunk).first(count));
  }
}

bool Meter::can_add_up(SummedBatch const& batch, std::uint64_t end_ns) const {
  return end_ns - clock_ns() < timeouts_.idle_ns && batch.sums.size() <= table_.capacity();
}

std::uint64_t Meter::clock_after(std::span<const std::uint64_t> stamps_ns) const {
  packet::PacketClock clock = clock_;
  for (const std::uint64_t stamp_ns : stamps_ns) {
    clock.advance(stamp_ns);
  }
  return clock.now_ns();
}

void Meter::begin_packet(std::uint64_t stamp_ns) {
  advance_clock(stamp_ns);
  expire(kExpiriesPerPacket);
}

std::uint32_t Meter::enter(packet::Ipv4FlowKey const& key, std::uint8_t tos, std::uint64_t hash) {
  const std::uint32_t flow = table_.find(key, hash);
  if (flow == FlowTable::kNone) {
    ++counts_.flows;
    return begin_flow(key, tos, hash);
  }
  if (is_idle(flow)) {
    end_flow(flow, EndReason::kIdle);
    ++counts_.flows;
    return begin_flow(key, tos, hash);
  }
  if (is_due(flow, clock_ns())) {
    end_flow(flow, EndReason::kActive);
    return begin_flow(key, tos, hash);
  }
  table_.touch(flow, clock_ns());
  return flow;
}

void Meter::advance_clock(std::uint64_t stamp_ns) {
  const std::uint64_t now_ns = clock_.advance(stamp_ns);
  if (now_ns - second_ns_ >= kNsPerSecond) {
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

std::uint32_t Meter::begin_flow(packet::Ipv4FlowKey const& key, std::uint8_t tos, std::uint64_t hash) {
  if (table_.full()) {
    ++counts_.evicted;
    end_flow(table_.oldest(), EndReason::kLackOfResources);
  }
  const std::uint32_t flow = table_.insert(key, hash, clock_ns());
  table_[flow].tos = tos;
  table_[flow].first_ns = std::numeric_limits<std::uint64_t>::max();  // of no packet yet
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

void Meter::take_over(std::span<Meter const* const> before,
                      std::function<bool(packet::Ipv4FlowKey const&)> const& is_mine) {
  struct Moved {
    std::uint64_t used_ns;
    Flow const* flow;
  };
  std::vector<Moved> moved;
  for (Meter const* const meter : before) {
    if (meter->clock_ns() > clock_ns()) {
      clock_ = meter->clock_;
    }
    second_ns_ = std::max(second_ns_, meter->second_ns_);
    meter->table_.for_each([&](std::uint32_t flow) {
      if (is_mine(meter->table_[flow].key)) {
        moved.push_back({meter->table_.used_ns(flow), &meter->table_[flow]});
      }
    });
  }
  std::ranges::stable_sort(moved, {}, &Moved::used_ns);
  for (Moved const& each : moved) {
    Flow const& old = *each.flow;
    const std::uint32_t flow = begin_flow(old.key, old.tos, table_.hash(old.key));
    table_.touch(flow, each.used_ns);
    Flow& counters = table_[flow];
    counters.packets = old.packets;
    counters.bytes = old.bytes;
    counters.first_ns = old.first_ns;
    counters.last_ns = old.last_ns;
    counters.started_ns = old.started_ns;
    counters.tcp_flags = old.tcp_flags;
  }
}

void Meter::add_counts(Meter const& before) {
  counts_.flows += before.counts_.flows;
  counts_.peak += before.counts_.peak - before.table_.size();  // who took over a flow has counted it
  counts_.exported += before.counts_.exported;
  counts_.evicted += before.counts_.evicted;
}

void Meter::finish(std::uint64_t latest_stamp_ns) {
  clock_.advance(latest_stamp_ns);
  while (table_.size() > 0) {
    const std::uint32_t oldest = table_.oldest();
    end_flow(oldest, is_idle(oldest) ? EndReason::kIdle : EndReason::kForcedEnd);
  }
}

}  // namespace catena::monitor
