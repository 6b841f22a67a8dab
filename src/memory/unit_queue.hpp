// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/arena.hpp"

#include <catena/core/counter.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace catena::memory {

/// A queue of units from one or several stages to one. It has room for every unit of the arena, so a push never fails;
/// where it has a bound, what does not fit is dropped at its tail.
/// Thread rule: one thread at a time for each stage that pushes, one thread pops.
class UnitQueue {
 public:
  /// Queue `number` of `arena`, which must outlive this. `pushers`: stages that push, and close it, at least one.
  UnitQueue(Arena& arena, std::uint32_t number, std::uint32_t pushers = 1)
      : arena_(&arena), ring_(&arena.queue(number)) {
    if (pushers > 1) {
      entrance_ = std::make_unique<Entrance>();
      entrance_->open = pushers;
    }
  }

  /// From here on a unit whose packets would be more than `packets` with those inside goes to `ended` instead, its
  /// packets that were alive dropped. Whoever pushes here pushes there, too, and closes both with close() of this one.
  /// Before the first push.
  void bound(std::uint64_t packets, UnitQueue& ended) {
    bound_ = packets;
    ended_ = &ended;
  }
  /// Packets that were dropped because of the bound. Any thread.
  std::uint64_t refused() const { return refused_; }

  void push(Unit* unit) { push(std::span(&unit, 1)); }
  /// The other side sees many of them together.
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
  /// Null when empty.
  Unit* pop() {
    std::uint32_t number = 0;
    if (!ring_->pop(std::span(&number, 1))) {
      return nullptr;
    }
    // another core wrote it: it comes while this one works on the unit in front of it
    if (const std::optional<std::uint32_t> next = ring_->known_next()) {
      Unit const& unit = arena_->unit(*next);
      __builtin_prefetch(&unit);
      __builtin_prefetch(unit.slots());
    }
    Unit* const unit = &arena_->unit(number);
    out_ += unit->count;
    return unit;
  }
  /// Packets inside, as seen from any thread; one that pushes or pops meanwhile may count as inside or not.
  std::uint64_t packets() const {
    const std::uint64_t out = out_;
    return std::max(std::uint64_t{in_}, out) - out;
  }
  bool empty() const { return size() == 0; }
  /// Units inside, as seen from any thread.
  std::uint32_t size() const { return ring_->size(); }
  /// One that pushes is done: nothing comes of it after what is inside.
  void close() {
    if (const auto lock = enter(); entrance_ == nullptr || --entrance_->open == 0) {
      ring_->close();
    }
    if (ended_ != nullptr) {
      ended_->close();
    }
  }
  /// True when closed by all and everything has been popped.
  bool drained() const { return ring_->is_closed() && empty(); }

 private:
  /// For several that push.
  struct Entrance {
    std::mutex mutex;
    std::uint32_t open = 0;  ///< of them, those that have not closed it; of the mutex
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
  UnitQueue* ended_ = nullptr;  ///< null: there is no bound
  Counter refused_;
  std::unique_ptr<Entrance> entrance_;           ///< null: one pushes
  alignas(packet::kCacheLineBytes) Counter in_;  ///< packets of all units that were pushed
  alignas(packet::kCacheLineBytes) Counter out_;
};

}  // namespace catena::memory
