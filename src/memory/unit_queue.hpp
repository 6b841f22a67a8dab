// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/arena.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace catena::memory {

/// A queue of units between two stages. It has room for every unit of the arena, so a push never fails.
/// Thread rule: one thread pushes, one thread pops.
class UnitQueue {
 public:
  /// Queue `number` of `arena`, which must outlive this.
  UnitQueue(Arena& arena, std::uint32_t number) : arena_(&arena), ring_(&arena.queue(number)) {}

  void push(Unit* unit) {
    const std::uint32_t number = arena_->number_of(*unit);
    ring_->push(std::span(&number, 1));
  }
  /// The other side sees many of them together.
  void push(std::span<Unit* const> units) {
    std::array<std::uint32_t, 64> numbers;
    while (!units.empty()) {
      const auto part = units.first(std::min(units.size(), numbers.size()));
      std::transform(part.begin(), part.end(), numbers.begin(),
                     [this](Unit const* unit) { return arena_->number_of(*unit); });
      ring_->push(std::span(numbers).first(part.size()));
      units = units.subspan(part.size());
    }
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
    return &arena_->unit(number);
  }
  bool empty() const { return size() == 0; }
  /// Units inside, as seen from any thread.
  std::uint32_t size() const { return ring_->size(); }
  /// The pushing side is done: nothing comes after what is inside.
  void close() { ring_->close(); }
  /// True when closed and everything has been popped.
  bool drained() const { return ring_->is_closed() && empty(); }

 private:
  Arena* arena_;
  IndexRing* ring_;
};

}  // namespace catena::memory
