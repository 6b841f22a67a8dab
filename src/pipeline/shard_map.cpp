// SPDX-License-Identifier: Apache-2.0
#include "pipeline/shard_map.hpp"

#include "pipeline/device_use.hpp"
#include "pipeline/flow_hash.hpp"
#include "pipeline/stage.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace catena::runtime {

namespace {

/// Slots are as far apart as to share few sets of a cache: headers that rx wrote a moment ago may have left it.
constexpr std::uint32_t kPrefetchAhead = 8;
constexpr std::uint32_t kMaxSpares = 64;

}  // namespace

SplitOrder::SplitOrder(std::uint32_t units) : ring_(std::bit_ceil(units)) {}

void SplitOrder::push(std::uint64_t shards) {
  const std::uint64_t at = pushed_.load(std::memory_order_relaxed);
  ring_[at % ring_.size()] = shards;
  pushed_.store(at + 1, std::memory_order_release);
}

std::uint64_t SplitOrder::pop() {
  const std::uint64_t at = popped_.load(std::memory_order_relaxed);
  if (at == pushed_.load(std::memory_order_acquire)) {
    return 0;
  }
  const std::uint64_t shards = ring_[at % ring_.size()];
  popped_.store(at + 1, std::memory_order_release);
  return shards;
}

std::uint32_t ShardMap::shard_of(packet::Packet const& packet) {
  if (sharder_ != nullptr && nf_->processes(packet)) {
    if (const std::optional<std::uint32_t> shard = sharder_->shard_of(packet)) {
      return *shard % shards_;  // an NF may be wrong
    }
  }
  return runtime::shard_of(flow_hash(packet, key_), shards_);
}

std::uint32_t ShardMap::shard_of(packet::FlowKey const& flow) const {
  return runtime::shard_of(flow_hash(flow, key_), shards_);
}

Splitter::Splitter(std::vector<memory::UnitQueue*> queues, memory::PacketPool& pool, SplitOrder* order,
                   ShardMap shard_map, RecordLog* lines, BufferReservation& reserve)
    : queues_(std::move(queues)),
      reserve_(&reserve),
      number_(reserve.add(static_cast<std::uint32_t>(queues_.size()))),
      pool_(&pool),
      order_(order),
      shard_map_(std::move(shard_map)),
      lines_(lines),
      parts_(queues_.size()) {}

bool Splitter::is_ready() {
  return std::find(parts_.begin(), parts_.end(), nullptr) == parts_.end() || reserve_->take(number_, parts_);
}

memory::Unit* Splitter::take_unit(memory::PacketPool& pool) {
  if (!is_ready()) {
    return nullptr;
  }
  if (reserve_ != nullptr) {
    return reserve_->take_one();
  }
  if (spares_.empty() && !take_spares(pool)) {
    return nullptr;
  }
  memory::Unit* const unit = spares_.back();
  spares_.pop_back();
  return unit;
}

bool Splitter::take_spares(memory::PacketPool& pool) {
  spare_pool_ = &pool;
  spares_.resize(std::clamp(kPacketsAtOnce / pool.unit_packets(), 1U, kMaxSpares));
  if (!pool.acquire_units(spares_)) {
    spares_.resize(1);
    if (!pool.acquire_units(spares_)) {
      spares_.clear();
      return false;
    }
  }
  for (memory::Unit* const unit : spares_) {  // whoever gave them back has them in its cache
    __builtin_prefetch(unit, 1);
    __builtin_prefetch(unit->slots(), 1);
  }
  return true;
}

void Splitter::give_back(memory::PacketPool& pool, memory::Unit* unit) {
  if (reserve_ != nullptr) {
    pool.release_unit(unit);
  } else {
    spares_.push_back(unit);
  }
}

void Splitter::start_part(memory::Unit& part, memory::Unit const& unit) const {
  part.first_index = unit.first_index;
  part.end_index = unit.end_index;
  part.arrival_ns = unit.arrival_ns;
  part.last_arrival_ns = unit.last_arrival_ns;
  part.host_fallback = unit.host_fallback;
  part.device_epoch = unit.device_epoch;
}

/// Puts the unit's packets into parts_. A bit for each that has some.
std::uint64_t Splitter::divide(memory::Unit const& unit) {
  const packet::Batch packets = pool_->batch(unit);
  std::uint64_t shards = 0;
  std::uint32_t shard = 0;
  for (std::uint32_t i = 0; i < packets.size(); ++i) {
    if (i + kPrefetchAhead < packets.size()) {
      __builtin_prefetch(packets[i + kPrefetchAhead].l3());
    }
    // nobody looks at one that was dropped: it stays with the packet before
    if (packets[i].verdict() != packet::Verdict::kDrop || shards == 0) {
      shard = shard_map_->shard_of(packets[i]);
    }
    memory::Unit& part = *parts_[shard];
    if (part.count == 0) {
      start_part(part, unit);
      shards |= std::uint64_t{1} << shard;
    }
    part.slots()[part.count++] = unit.slots()[i];
  }
  return shards;
}

bool Splitter::empty() const {
  return waiting_.empty() &&
         std::ranges::all_of(queues_, [](memory::UnitQueue const* queue) { return queue->empty(); });
}

void Splitter::push(memory::Unit* unit) {
  if (pool_ == nullptr) {
    waiting_.push_back(unit);
    waiting_packets_ += unit->count;
    if (waiting_packets_ >= kPacketsAtOnce) {
      flush();
    }
    return;
  }
  const auto keep_order = [this](std::uint64_t shards) {
    if (order_ != nullptr) {
      order_->push(shards);
    }
  };
  if (unit->quarantined) {
    keep_order(1);  // there is no packet in it that anybody may look at
    queues_.front()->push(unit);
    return;
  }
  const std::uint64_t shards = divide(*unit);
  if (lines_ != nullptr) {
    split_lines(*unit, shards);
  }
  // before units may come back: whoever takes them has to know that parts are missing
  reserve_->used(number_, static_cast<std::uint32_t>(std::popcount(shards)));
  pool_->release_unit(unit);
  keep_order(shards);  // before its parts: whoever has one must know of the others
  for (std::uint64_t left = shards; left != 0; left &= left - 1) {
    const auto shard = static_cast<std::size_t>(std::countr_zero(left));
    queues_[shard]->push(std::exchange(parts_[shard], nullptr));
  }
}

void Splitter::keep(memory::Unit* unit) {
  if (pool_ == nullptr) {
    push(unit);
  } else {
    waiting_.push_back(unit);
  }
}

bool Splitter::push_kept() {
  if (pool_ == nullptr) {
    return true;
  }
  auto next = waiting_.begin();
  while (next != waiting_.end() && is_ready()) {
    push(*next++);
  }
  waiting_.erase(waiting_.begin(), next);
  return waiting_.empty();
}

void Splitter::split_lines(memory::Unit const& unit, std::uint64_t shards) {
  if (order_ != nullptr) {
    // all with one part: they are put in order where the parts meet again
    std::swap(lines_->of(*parts_[static_cast<std::size_t>(std::countr_zero(shards))]), lines_->of(unit));
    return;
  }
  std::vector<PartLines> parts;
  for (std::uint64_t left = shards; left != 0; left &= left - 1) {
    memory::Unit const& part = *parts_[static_cast<std::size_t>(std::countr_zero(left))];
    parts.push_back({pool_->batch(part), &lines_->of(part)});
  }
  divide_lines(lines_->of(unit), parts);
}

void Splitter::flush() {
  if (pool_ == nullptr && !waiting_.empty()) {
    queues_.front()->push(waiting_);
    waiting_.clear();
    waiting_packets_ = 0;
  }
}

void Splitter::close() {
  flush();
  for (memory::Unit*& part : parts_) {
    if (part != nullptr) {
      pool_->release_unit(std::exchange(part, nullptr));
    }
  }
  for (memory::Unit* const unit : spares_) {
    spare_pool_->release_unit(unit);
  }
  spares_.clear();
  for (memory::UnitQueue* queue : queues_) {
    queue->close();
  }
}

Merger::Merger(std::vector<memory::UnitQueue*> queues, memory::PacketPool& pool, SplitOrder& order, RecordLog* lines)
    : queues_(std::move(queues)), pool_(&pool), order_(&order), lines_(lines) {}

bool Merger::drained() const {
  return ready_.empty() && missing_ == 0 && parts_.empty() &&
         std::all_of(queues_.begin(), queues_.end(), [](memory::UnitQueue const* queue) { return queue->drained(); });
}

memory::Unit* Merger::pop() {
  if (pool_ == nullptr) {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      memory::UnitQueue* const queue = queues_[turn_];
      turn_ = turn_ + 1 == queues_.size() ? 0 : turn_ + 1;
      if (memory::Unit* const unit = queue->pop(); unit != nullptr) {
        return unit;
      }
    }
    return nullptr;
  }
  if (ready_.empty()) {
    collect();
  }
  if (ready_.empty()) {
    return nullptr;
  }
  memory::Unit* const unit = ready_.front();
  ready_.pop_front();
  return unit;
}

/// Takes what has come of the next unit.
void Merger::collect() {
  if (missing_ == 0) {
    missing_ = order_->pop();
  }
  for (std::uint64_t left = missing_; left != 0; left &= left - 1) {
    const auto shard = static_cast<std::size_t>(std::countr_zero(left));
    if (memory::Unit* part = queues_[shard]->pop(); part != nullptr) {
      parts_.push_back(part);
      missing_ &= ~(std::uint64_t{1} << shard);
    }
  }
  if (missing_ == 0 && !parts_.empty()) {
    merge();
  }
}

void Merger::merge() {
  const auto sound =
      std::stable_partition(parts_.begin(), parts_.end(), [](memory::Unit const* part) { return part->quarantined; });
  if (lines_ != nullptr && parts_.size() > 1) {
    merge_lines(sound != parts_.end() ? **sound : *parts_.back());
  }
  ready_.insert(ready_.end(), parts_.begin(), sound);
  parts_.erase(parts_.begin(), sound);
  if (!parts_.empty()) {
    memory::Unit& whole = *parts_.front();
    if (parts_.size() > 1) {
      merge_slots(whole);
    }
    ready_.push_back(&whole);
  }
  parts_.clear();
}

/// All slots into the first part, in the order of their packets; the other parts are given back.
void Merger::merge_slots(memory::Unit& whole) {
  slots_.clear();
  for (memory::Unit* part : parts_) {
    // what the device was to do for a part of it was done on the host: so it is for the rest from here on
    whole.host_fallback = whole.host_fallback || part->host_fallback;
    if (whole.device_epoch != part->device_epoch) {
      whole.device_epoch = kMixedEpochs;
    }
    slots_.insert(slots_.end(), part->slots(), part->slots() + part->count);
    if (part != &whole) {
      pool_->release_unit(part);
    }
  }
  std::uint64_t const* const index = pool_->meta().index;
  std::sort(slots_.begin(), slots_.end(), [index](std::uint32_t a, std::uint32_t b) { return index[a] < index[b]; });
  std::copy(slots_.begin(), slots_.end(), whole.slots());
  whole.count = static_cast<std::uint32_t>(slots_.size());
}

/// All lines to the part that goes on last: they go into files in the order of packets.
void Merger::merge_lines(memory::Unit& last) {
  UnitRecords& lines = lines_->of(last);
  for (memory::Unit* part : parts_) {
    if (part == &last) {
      continue;
    }
    UnitRecords& more = lines_->of(*part);
    std::move(more.records.begin(), more.records.end(), std::back_inserter(lines.records));
    std::move(more.alerts.begin(), more.alerts.end(), std::back_inserter(lines.alerts));
    lines.arrivals.insert(lines.arrivals.end(), more.arrivals.begin(), more.arrivals.end());
    more.clear();
  }
  std::sort(lines.arrivals.begin(), lines.arrivals.end(),
            [](nf::Arrival const& a, nf::Arrival const& b) { return a.packet < b.packet; });
}

}  // namespace catena::runtime
