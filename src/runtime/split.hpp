// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/packet_pool.hpp"
#include "memory/unit_queue.hpp"
#include "runtime/unit_lines.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

/// From one source to the shards of a chain, and back to one sink. A unit that rx took becomes parts, one for each
/// shard that has packets in it; tx puts them together again. So packets leave in the order in which they came, and
/// what a chain writes does not depend on how many shards it has.
namespace catena::runtime {

/// Which shards have a part of each unit, in the order of units. One thread pushes, one pops.
class SplitOrder {
 public:
  /// Room for `units` of them, at least.
  explicit SplitOrder(std::uint32_t units);
  /// `shards`: a bit for each, at least one. Precondition: there is room.
  void push(std::uint64_t shards);
  /// 0: there is none.
  std::uint64_t pop();

 private:
  std::vector<std::uint64_t> ring_;
  alignas(64) std::atomic<std::uint64_t> pushed_{0};
  alignas(64) std::atomic<std::uint64_t> popped_{0};
};

/// The end of rx: hands units to one queue, or parts of them to several. Belongs to one thread at a time.
class Splitter {
 public:
  /// All units to one queue, as they are.
  Splitter(memory::UnitQueue& only) : queues_{&only} {}  // NOLINT: rx needs not know that there may be more
  /// Parts by flow_hash() with `key`; everything else outlives this. `lines`: null in a chain that writes none.
  Splitter(std::vector<memory::UnitQueue*> queues, memory::PacketPool& pool, SplitOrder& order, std::uint64_t key,
           LineBook* lines);

  /// Whether push() has the empty units that it needs. To be asked in front of it; where it is not, units are in flight
  /// that will come back.
  bool is_ready();
  /// Units that must be there at one time for rx to go on: that which it takes, and one for each part.
  std::uint32_t units_needed() const { return 1 + static_cast<std::uint32_t>(parts_.size()); }
  /// Takes the unit, which is not empty.
  void push(memory::Unit* unit);
  /// Nothing comes any more.
  void close();

 private:
  void start_part(memory::Unit& part, memory::Unit const& unit) const;

  std::vector<memory::UnitQueue*> queues_;
  memory::PacketPool* pool_ = nullptr;  ///< null with one queue
  SplitOrder* order_ = nullptr;
  std::uint64_t key_ = 0;
  LineBook* lines_ = nullptr;
  std::vector<memory::Unit*> parts_;  ///< an empty unit for each queue; null: to be taken
};

/// The beginning of tx: takes units from one queue, or puts parts from several together. Belongs to one thread at a
/// time.
class Merger {
 public:
  Merger(memory::UnitQueue& only) : queues_{&only} {}  // NOLINT: tx needs not know that there may be more
  Merger(std::vector<memory::UnitQueue*> queues, memory::PacketPool& pool, SplitOrder& order, LineBook* lines);

  /// The next unit; null: none yet. Parts that are quarantined come one by one, in front of the rest of their unit, and
  /// the lines of all of them with the first.
  memory::Unit* pop();
  /// Nothing comes any more.
  bool drained() const;

 private:
  void collect();
  void merge();
  void merge_slots(memory::Unit& whole);
  void merge_lines(memory::Unit& first);

  std::vector<memory::UnitQueue*> queues_;
  memory::PacketPool* pool_ = nullptr;  ///< null with one queue
  SplitOrder* order_ = nullptr;
  LineBook* lines_ = nullptr;
  std::uint64_t missing_ = 0;         ///< shards whose part of the unit at hand is still to come
  std::vector<memory::Unit*> parts_;  ///< of the unit at hand
  std::deque<memory::Unit*> ready_;
  std::vector<std::uint32_t> slots_;  ///< of the unit that is being put together
};

}  // namespace catena::runtime
