// SPDX-License-Identifier: Apache-2.0
#include "flow_table.hpp"

#include <catena/nf/tcp_state.hpp>

#include <algorithm>
#include <utility>

namespace catena::lb {
namespace {

constexpr std::uint64_t kTickNs = 1000000000;
// Time stops here, 136 years after the first packet: stamps of hostile captures go further.
constexpr std::uint64_t kLastTick = std::numeric_limits<std::uint32_t>::max();
// Eight entries a bucket and two entries a flow: this many buckets are half full.
constexpr std::uint32_t kFlowsPerBucket = 2;

}  // namespace

FlowTable::FlowTable(FlowLimits limits, std::uint32_t backends, Timeouts const& timeouts)
    : buckets_(limits.flows / kFlowsPerBucket + 2),
      flows_(limits.flows),
      flows_of_(backends),
      max_half_open_(limits.half_open) {
  lists_[kHalfOpen].timeout = timeouts.tcp_opening;
  lists_[kClosing].timeout = timeouts.tcp_closing;
  lists_[kUdp].timeout = timeouts.udp;
  lists_[kEstablished].timeout = timeouts.tcp_established;
}

FlowTable::Kind FlowTable::kind_of(bool is_udp, std::uint8_t tcp_state) {
  if (is_udp) {
    return kUdp;
  }
  switch (nf::tcp_phase(tcp_state)) {
    case nf::TcpPhase::kOpening:
      return kHalfOpen;
    case nf::TcpPhase::kClosing:
      return kClosing;
    default:
      return kEstablished;
  }
}

void FlowTable::advance(std::uint64_t now_ns, std::uint32_t limit) {
  if (!started_) {
    started_ = true;
    first_ns_ = now_ns;
  }
  now_tick_ = static_cast<std::uint32_t>(std::min(now_ns / kTickNs - first_ns_ / kTickNs, kLastTick));
  for (List const& list : lists_) {
    while (list.oldest != kNone && has_expired(flows_[list.oldest])) {
      if (limit-- == 0) {
        return;
      }
      expire(list.oldest);
    }
  }
}

void FlowTable::prefetch_buckets(std::uint64_t hash) const {
  __builtin_prefetch(&buckets_[first_bucket(hash)]);
  __builtin_prefetch(&buckets_[second_bucket(hash)]);
}

void FlowTable::prefetch_flow(std::uint64_t hash) const {
  for (const std::uint32_t bucket : {first_bucket(hash), second_bucket(hash)}) {
    Bucket const& entries = buckets_[bucket];
    for (std::uint32_t i = 0; i < kBucketEntries; ++i) {
      if (entries.tag[i] == tag_of(hash) && entries.reference[i] != 0) {
        __builtin_prefetch(&flows_[entries.reference[i] - 1], 1);
        return;
      }
    }
  }
}

void FlowTable::make_room(bool is_udp) {
  if (!is_udp && half_open_ >= max_half_open_) {
    evict(lists_[kHalfOpen].oldest);
  }
  for (std::uint32_t kind = 0; kind < kKinds && !has_record(); ++kind) {
    if (lists_[kind].oldest != kNone) {
      evict(lists_[kind].oldest);
    }
  }
}

FlowTable::Id FlowTable::insert(Flow const& flow, std::uint64_t to_backend_hash, std::uint64_t to_client_hash,
                                Id to_client_twin) {
  const bool reused = first_free_ != kNone;
  const Id id = reused ? first_free_ : never_used_;
  if (id >= flows_.size()) {
    return kNone;
  }
  const Id next_free = reused ? flows_[id].newer_ : kNone;
  const std::uint32_t to_backend_entry = add_entry(to_backend_hash, id);
  if (to_backend_entry == kNone) {
    return kNone;
  }
  std::uint32_t to_client_entry = 0;
  if (to_client_twin != kNone) {
    to_client_entry = flows_[to_client_twin].to_client_entry_;
    buckets_[to_client_entry / kBucketEntries].reference[to_client_entry % kBucketEntries] = id + 1;
  } else if (to_client_entry = add_entry(to_client_hash, id); to_client_entry == kNone) {
    remove_entry(to_backend_entry, id);
    return kNone;
  }
  if (reused) {
    first_free_ = next_free;
  } else {
    ++never_used_;
  }
  Flow& record = flows_[id];
  record = flow;
  record.last_tick_ = now_tick_;
  record.to_backend_entry_ = to_backend_entry;
  record.to_client_entry_ = to_client_entry;
  append(id);
  ++flows_of_[flow.backend];
  ++size_;
  ++created_;
  return id;
}

void FlowTable::touch(Id id, std::uint8_t tcp_state) {
  Flow& flow = flows_[id];
  if (flow.last_tick_ == now_tick_ && kind_of(flow.is_udp, tcp_state) == kind_of(flow)) {
    flow.tcp_state = tcp_state;
    return;  // the lists are in order of ticks: most packets of a busy flow need not move it
  }
  unlink(id);
  flow.tcp_state = tcp_state;
  flow.last_tick_ = now_tick_;
  append(id);
}

void FlowTable::note(Id id, std::uint8_t tcp_state) {
  if (kind_of(flows_[id].is_udp, tcp_state) != kind_of(flows_[id])) {
    touch(id, tcp_state);
  } else {
    flows_[id].tcp_state = tcp_state;
  }
}

void FlowTable::erase(Id id) {
  Flow& flow = flows_[id];
  unlink(id);
  remove_entry(flow.to_backend_entry_, id);
  remove_entry(flow.to_client_entry_, id);
  --flows_of_[flow.backend];
  --size_;
  flow.newer_ = first_free_;
  first_free_ = id;
}

void FlowTable::expire(Id id) {
  erase(id);
  ++expired_;
}

void FlowTable::evict(Id id) {
  erase(id);
  ++evicted_;
}

std::uint32_t FlowTable::add_entry(std::uint64_t hash, Id id) {
  const auto used = [this](std::uint32_t bucket) {
    std::uint32_t count = 0;
    for (const std::uint32_t reference : buckets_[bucket].reference) {
      count += reference != 0 ? 1U : 0U;
    }
    return count;
  };
  const std::uint32_t first = first_bucket(hash);
  const std::uint32_t second = second_bucket(hash);
  const std::uint32_t bucket = used(second) < used(first) ? second : first;
  for (std::uint32_t i = 0; i < kBucketEntries; ++i) {
    if (buckets_[bucket].reference[i] == 0) {
      buckets_[bucket].tag[i] = tag_of(hash);
      buckets_[bucket].reference[i] = id + 1;
      return bucket * kBucketEntries + i;
    }
  }
  return kNone;
}

void FlowTable::remove_entry(std::uint32_t entry, Id id) {
  std::uint32_t& reference = buckets_[entry / kBucketEntries].reference[entry % kBucketEntries];
  if (reference == id + 1) {  // else another flow has taken its place
    reference = 0;
  }
}

void FlowTable::append(Id id) {
  Flow& flow = flows_[id];
  List& list = lists_[kind_of(flow)];
  half_open_ += kind_of(flow) == kHalfOpen ? 1U : 0U;
  flow.older_ = list.newest;
  flow.newer_ = kNone;
  (list.newest == kNone ? list.oldest : flows_[list.newest].newer_) = id;
  list.newest = id;
}

void FlowTable::unlink(Id id) {
  Flow const& flow = flows_[id];
  List& list = lists_[kind_of(flow)];
  half_open_ -= kind_of(flow) == kHalfOpen ? 1U : 0U;
  (flow.older_ == kNone ? list.oldest : flows_[flow.older_].newer_) = flow.newer_;
  (flow.newer_ == kNone ? list.newest : flows_[flow.newer_].older_) = flow.older_;
}

/// Flows by list, the one longest without a packet first: so they are in each list in that order again.
void FlowTable::save(nf::StateWriter& state) const {
  state.put(started_);
  state.put(first_ns_);
  state.put(now_tick_);
  state.put(created_);
  state.put(expired_);
  state.put(evicted_);
  state.put(size_);
  state.reserve(std::size_t{size_} * sizeof(Flow) / 2);
  for (List const& list : lists_) {
    for (Id id = list.oldest; id != kNone; id = flows_[id].newer_) {
      Flow const& flow = flows_[id];
      state.put(flow.client_address);
      state.put(flow.client_port);
      state.put(flow.service);
      state.put(flow.backend);
      state.put(flow.is_udp);
      state.put(flow.tcp_state);
      state.put(flow.last_tick_);
      state.put(owns_to_client_entry(id));
    }
  }
}

bool FlowTable::load(nf::StateReader& state, std::function<std::optional<FlowSlot>(Flow&)> const& place) {
  started_ = state.get<bool>();
  first_ns_ = state.get<std::uint64_t>();
  now_tick_ = state.get<std::uint32_t>();
  const auto created = state.get<std::uint64_t>();
  const auto expired = state.get<std::uint64_t>();
  const auto evicted = state.get<std::uint64_t>();
  const auto size = state.get<std::uint32_t>();
  if (size > flows_.size()) {
    return false;
  }
  std::array<std::uint32_t, kKinds> newest{};
  std::vector<Id> without_entry;  // to the client
  for (std::uint32_t i = 0; i < size; ++i) {
    Flow flow;
    flow.client_address = state.get<std::uint32_t>();
    flow.client_port = state.get<std::uint16_t>();
    flow.service = state.get<std::uint16_t>();
    flow.backend = state.get<std::uint16_t>();
    flow.is_udp = state.get<bool>();
    flow.tcp_state = state.get<std::uint8_t>();
    const auto tick = state.get<std::uint32_t>();
    const auto owns_to_client_entry = state.get<bool>();
    if (!state.is_sound() || tick > now_tick_ || tick < std::exchange(newest[kind_of(flow)], tick)) {
      return false;
    }
    const std::optional<FlowSlot> at = place(flow);
    if (!at) {
      continue;
    }
    if (at->known != kNone || (kind_of(flow) == kHalfOpen && half_open_ >= max_half_open_)) {
      return false;
    }
    if (const Id id = restore(flow, *at, tick, owns_to_client_entry); id != kNone && !owns_to_client_entry) {
      without_entry.push_back(id);
    }
  }
  for (const Id id : without_entry) {  // whose other flow is gone
    remove_entry(flows_[id].to_client_entry_, id);
  }
  created_ = created;
  expired_ = expired;
  evicted_ = evicted;
  return state.is_sound();
}

/// Adds a flow of another table; kNone if the buckets are full.
FlowTable::Id FlowTable::restore(Flow const& flow, FlowSlot const& at, std::uint32_t tick, bool owns_to_client_entry) {
  const Id id = insert(flow, at.to_backend_hash, at.to_client_hash, at.to_client_twin);
  if (id == kNone) {
    return kNone;
  }
  flows_[id].last_tick_ = tick;
  if (!owns_to_client_entry && at.to_client_twin != kNone) {
    const std::uint32_t entry = flows_[id].to_client_entry_;
    buckets_[entry / kBucketEntries].reference[entry % kBucketEntries] = at.to_client_twin + 1;
  }
  return id;
}

void FlowTable::take_over(std::span<FlowTable const* const> before,
                          std::function<bool(Flow const&, std::size_t)> const& is_mine,
                          std::function<std::optional<FlowSlot>(Flow&, std::size_t)> const& place) {
  struct Moved {
    std::size_t table;
    Id id;
    std::uint32_t tick;  // of this table
  };
  std::uint64_t first_s = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t now_s = 0;
  for (FlowTable const* const table : before) {
    if (table->started_ && table->first_ns_ / kTickNs < first_s) {
      started_ = true;
      first_ns_ = table->first_ns_;
      first_s = first_ns_ / kTickNs;
    }
    now_s = std::max(now_s, table->first_ns_ / kTickNs + table->now_tick_);
  }
  now_tick_ = started_ ? static_cast<std::uint32_t>(std::min(now_s - first_s, kLastTick)) : 0;
  const std::uint64_t created = created_;
  std::vector<bool> lacks_entry(flows_.size());  // to the client, by record: an evicted flow's is used again
  for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
    std::vector<Moved> moved;
    for (std::size_t number = 0; number < before.size(); ++number) {
      FlowTable const& table = *before[number];
      const std::uint64_t shift = table.first_ns_ / kTickNs - first_s;
      for (Id id = table.lists_[kind].oldest; id != kNone; id = table.flows_[id].newer_) {
        if (is_mine(table.flows_[id], number)) {
          const std::uint64_t tick = std::min(table.flows_[id].last_tick_ + shift, kLastTick);
          moved.push_back({number, id, static_cast<std::uint32_t>(tick)});
        }
      }
    }
    std::ranges::stable_sort(moved, {}, &Moved::tick);
    for (Moved const& each : moved) {
      Flow flow = before[each.table]->flows_[each.id];
      make_room(kind != kHalfOpen);
      const std::optional<FlowSlot> at = place(flow, each.table);
      if (!at || at->known != kNone) {
        continue;
      }
      const bool owns_entry = before[each.table]->owns_to_client_entry(each.id);
      if (const Id id = restore(flow, *at, each.tick, owns_entry); id != kNone) {
        lacks_entry[id] = !owns_entry;
      }
    }
  }
  for (Id id = 0; id < never_used_; ++id) {
    if (lacks_entry[id]) {  // and its other flow is gone
      remove_entry(flows_[id].to_client_entry_, id);
    }
  }
  created_ = created;
}

void FlowTable::add_counts(FlowTable const& before) {
  created_ += before.created_;
  expired_ += before.expired_;
  evicted_ += before.evicted_;
}

std::uint64_t FlowTable::bytes() const {
  return buckets_.size() * sizeof(Bucket) + flows_.size() * sizeof(Flow) + flows_of_.size() * sizeof(Counter);
}

}  // namespace catena::lb
