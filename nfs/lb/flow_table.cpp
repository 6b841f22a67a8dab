// SPDX-License-Identifier: Apache-2.0
#include "flow_table.hpp"

#include <algorithm>

namespace catena::lb {
namespace {

constexpr std::uint64_t kTickNs = 1000000000;
// The clock stops here, 136 years after the first packet: stamps of hostile captures go further.
constexpr std::uint64_t kLastTick = std::numeric_limits<std::uint32_t>::max();
// More than one flow a packet, so that expired ones are gone before new ones need their room; few enough that no packet
// waits for the others after a gap.
constexpr std::uint32_t kExpiredPerPacket = 4;
// Eight entries a bucket and two entries a flow: this many buckets are half full.
constexpr std::uint32_t kFlowsPerBucket = 2;

}  // namespace

FlowTable::FlowTable(std::uint32_t max_flows, std::uint32_t backends, std::uint32_t open_timeout,
                     std::uint32_t closing_timeout)
    : buckets_(max_flows / kFlowsPerBucket + 2),
      flows_(max_flows),
      flows_of_(backends),
      open_{.timeout = open_timeout},
      closing_{.timeout = closing_timeout} {}

void FlowTable::advance(std::uint64_t arrival_ns) {
  if (!started_) {
    started_ = true;
    first_ns_ = latest_ns_ = arrival_ns;
  }
  if (arrival_ns > latest_ns_) {
    latest_ns_ = arrival_ns;
    now_tick_ = static_cast<std::uint32_t>(std::min((latest_ns_ - first_ns_) / kTickNs, kLastTick));
  }
  for (std::uint32_t i = 0; i < kExpiredPerPacket; ++i) {
    if (open_.oldest != kNone && has_expired(flows_[open_.oldest])) {
      expire(open_.oldest);
    } else if (closing_.oldest != kNone && has_expired(flows_[closing_.oldest])) {
      expire(closing_.oldest);
    } else {
      return;
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
  record.is_closing = false;
  record.last_tick_ = now_tick_;
  record.to_backend_entry_ = to_backend_entry;
  record.to_client_entry_ = to_client_entry;
  append(id);
  ++flows_of_[flow.backend];
  ++size_;
  ++created_;
  return id;
}

void FlowTable::touch(Id id, bool closes) {
  Flow& flow = flows_[id];
  const bool starts_closing = closes && !flow.is_closing;
  if (flow.last_tick_ == now_tick_ && !starts_closing) {
    return;  // the lists are in order of ticks: most packets of a busy flow need not move it
  }
  unlink(id);
  flow.is_closing = flow.is_closing || closes;
  flow.last_tick_ = now_tick_;
  append(id);
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
  List& list = list_of(flow);
  flow.older_ = list.newest;
  flow.newer_ = kNone;
  (list.newest == kNone ? list.oldest : flows_[list.newest].newer_) = id;
  list.newest = id;
}

void FlowTable::unlink(Id id) {
  Flow const& flow = flows_[id];
  List& list = list_of(flow);
  (flow.older_ == kNone ? list.oldest : flows_[flow.older_].newer_) = flow.newer_;
  (flow.newer_ == kNone ? list.newest : flows_[flow.newer_].older_) = flow.older_;
}

std::uint64_t FlowTable::bytes() const {
  return buckets_.size() * sizeof(Bucket) + flows_.size() * sizeof(Flow) + flows_of_.size() * sizeof(std::uint32_t);
}

}  // namespace catena::lb
