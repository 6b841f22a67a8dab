// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/arena.hpp"

#include <catena/core/counter.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace catena::memory {

/// A queue of units from one or several stages to one stage. It has space for every unit of the arena, so a push never
/// fails. If it has a bound, the packets of units beyond it are dropped at its tail. Thread rule: one thread at a time
/// per pushing stage, one thread pops.
class UnitQueue {
 public:
  /// Queue `number` of `arena`, which must outlive this. `pushers`: number of stages that push to it and close it, at
  /// least one.
  UnitQueue(Arena& arena, std::uint32_t number, std::uint32_t pushers = 1)
      : arena_(&arena), ring_(&arena.queue(number)) {
    if (pushers > 1) {
      entrance_ = std::make_unique<Entrance>();
      entrance_->open = pushers;
    }
  }

  /// From now on a unit that would raise the packets inside above `packets` goes to `ended` instead, with its live
  /// packets dropped. The stages that push here also push to `ended`, and close() of this queue closes both. Called
  /// before the first push.
  void bound(std::uint64_t packets, UnitQueue& ended) {
    bound_ = packets;
    ended_ = &ended;
  }
  /// Packets dropped because of the bound. Any thread.
  std::uint64_t refused() const { return refused_; }

  void push(Unit* unit) { push(std::span(&unit, 1)); }
  /// Makes many units visible to the popping side together.
  void push(std::span<Unit* const> units) {
    const auto lock = enter();
    if (ended_ != nullptr) {
      for (Unit* const unit : units) {
        fits(*unit) ? push_all(std::span(&unit, 1)) : refuse(unit);
      }
      return;
    }
    push_all(units);
  }
  /// Null if empty.
  Unit* pop() {
    std::uint32_t number = 0;
    if (!ring_->pop(std::span(&number, 1))) {
      return nullptr;
    }
    // written by another core: prefetch it while this core works on the unit before it
    if (const std::optional<std::uint32_t> next = ring_->known_next()) {
      Unit const& unit = arena_->unit(*next);
      __builtin_prefetch(&unit);
      __builtin_prefetch(unit.slots());
    }
    Unit* const unit = &arena_->unit(number);
    out_ += unit->count;
    return unit;
  }
  /// Packets inside, as seen from any thread. A concurrent push or pop may be included or not.
  std::uint64_t packets() const {
    const std::uint64_t out = out_;
    return std::max(std::uint64_t{in_}, out) - out;
  }
  bool empty() const { return size() == 0; }
  /// Units inside, as seen from any thread.
  std::uint32_t size() const { return ring_->size(); }
  /// One pushing stage is done and pushes nothing more.
  void close() {
    if (const auto lock = enter(); entrance_ == nullptr || --entrance_->open == 0) {
      ring_->close();
    }
    if (ended_ != nullptr) {
      ended_->close();
    }
  }
  /// True if all stages have closed it and everything has been popped.
  bool drained() const { return ring_->is_closed() && empty(); }

 private:
  /// For several pushing stages.
  struct Entrance {
    std::mutex mutex;
    std::uint32_t open = 0;  ///< stages that have not closed it; protected by mutex
  };
  std::unique_lock<std::mutex> enter() const {
    return entrance_ == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(entrance_->mutex);
  }

  void push_all(std::span<Unit* const> units) {
    for (Unit const* unit : units) {
      in_ += unit->count;
    }
    std::array<std::uint32_t, 64> numbers;
    while (!units.empty()) {
      const auto part = units.first(std::min(units.size(), numbers.size()));
      std::transform(part.begin(), part.end(), numbers.begin(),
                     [this](Unit const* unit) { return arena_->number_of(*unit); });
      ring_->push(std::span(numbers).first(part.size()));
      units = units.subspan(part.size());
    }
  }
  bool fits(Unit const& unit) const { return packets() + unit.count <= bound_; }
  void refuse(Unit* unit) {
    packet::MetaColumns const& meta = arena_->meta();
    for (const std::uint32_t slot : unit->quarantined ? std::span<const std::uint32_t>() : unit->used_slots()) {
      if (packet::ended(meta.verdict[slot]) == 0) {
        meta.verdict[slot] = static_cast<std::uint8_t>(packet::Verdict::kDrop);
        ++refused_;
      }
    }
    ended_->push(unit);
  }

  Arena* arena_;
  IndexRing* ring_;
  std::uint64_t bound_ = 0;
  UnitQueue* ended_ = nullptr;  ///< null: no bound
  Counter refused_;
  std::unique_ptr<Entrance> entrance_;           ///< null: one pushing stage
  alignas(packet::kCacheLineBytes) Counter in_;  ///< packets of all pushed units
  alignas(packet::kCacheLineBytes) Counter out_;
};

}  // namespace catena::memory
