// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/packet_pool.hpp"
#include "memory/unit_queue.hpp"
#include "nf/instance.hpp"
#include "runtime/unit_lines.hpp"
#include "runtime/unit_reserve.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

/// From one source to the shards of a chain, and back to one sink. A unit that rx took becomes parts, one for each
/// shard that has packets in it; tx puts them together again, and so does a hand-over between NFs that want them
/// divided in different ways. So packets leave in the order in which they came, and what a chain writes does not depend
/// on how many shards it has.
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

/// Which shard has to see a packet. Belongs to one thread at a time.
class Division {
 public:
  /// By flow_hash() with `key`.
  Division(std::uint32_t shards, std::uint64_t key) : shards_(shards), key_(key) {}
  /// As the divider of `nf`, which outlives this, says of packets that it decides; by flow where that leaves it open.
  Division(std::uint32_t shards, std::uint64_t key, nf::Instance const& nf)
      : shards_(shards), key_(key), nf_(&nf), divider_(nf.nf().divider()) {}

  std::uint32_t shards() const { return shards_; }
  std::uint32_t shard_of(packet::Packet const& packet);

 private:
  std::uint32_t shards_;
  std::uint64_t key_;
  nf::Instance const* nf_ = nullptr;
  std::unique_ptr<nf::Divider> divider_;
};

/// The end of rx, or of a hand-over: hands units to one queue, or parts of them to several. Belongs to one thread at a
/// time.
class Splitter {
 public:
  /// All units to one queue, as they are. `reserve`: of splitters behind it; null: there are none.
  Splitter(memory::UnitQueue& only, UnitReserve* reserve = nullptr)  // NOLINT: rx needs not know that there may be more
      : queues_{&only}, reserve_(reserve) {}
  /// Parts, one queue for each shard of the division; everything else outlives this. `order`: null where nobody puts
  /// them together again. `lines`: null in a chain that writes none. To be made behind the splitters that packets pass
  /// before it.
  Splitter(std::vector<memory::UnitQueue*> queues, memory::PacketPool& pool, SplitOrder* order, Division division,
           LineBook* lines, UnitReserve& reserve);

  /// Empty units that it and those behind it may have at once.
  std::uint32_t units_wanted() const { return reserve_ == nullptr ? 0 : reserve_->wanted_from(number_); }
  /// The same of slots for copies.
  std::uint32_t slots_wanted() const { return reserve_ == nullptr ? 0 : reserve_->slots_wanted_from(number_); }
  /// Whether all that was pushed has been popped.
  bool empty() const;
  /// Whether push() has the empty units that it needs. To be asked in front of it; where it is not, units are in flight
  /// that will come back.
  bool is_ready();
  /// An empty unit of `pool` for what rx receives, with those that push() needs for it; null: not now.
  memory::Unit* take_unit(memory::PacketPool& pool);
  /// One that take_unit() gave, and that stayed empty.
  void give_back(memory::PacketPool& pool, memory::Unit* unit);
  /// Takes the unit, which is not empty. Where all go to one queue they may wait for others until flush().
  void push(memory::Unit* unit);
  /// What was pushed can be popped from here on. To be called when nothing more is at hand.
  void flush();
  /// Nothing comes any more.
  void close();

 private:
  bool take_spares(memory::PacketPool& pool);
  std::uint64_t divide(memory::Unit const& unit);
  void start_part(memory::Unit& part, memory::Unit const& unit) const;
  void split_lines(memory::Unit const& unit, std::uint64_t shards);

  std::vector<memory::UnitQueue*> queues_;
  UnitReserve* reserve_;                ///< null where nobody else takes units
  std::uint32_t number_ = 0;            ///< in the reserve
  memory::PacketPool* pool_ = nullptr;  ///< null with one queue
  SplitOrder* order_ = nullptr;         ///< null where parts are not put together again
  std::optional<Division> division_;
  LineBook* lines_ = nullptr;
  std::vector<memory::Unit*> parts_;    ///< an empty unit for each queue; null: to be taken
  std::vector<memory::Unit*> waiting_;  ///< with one queue: what goes into it together
  std::uint32_t waiting_packets_ = 0;
  memory::PacketPool* spare_pool_ = nullptr;
  std::vector<memory::Unit*> spares_;  ///< where nobody else takes units: empty ones of spare_pool_, taken together
};

/// The beginning of tx, or of a hand-over: takes units from one queue, or from several, whose parts it may put
/// together. Belongs to one thread at a time.
class Merger {
 public:
  Merger(memory::UnitQueue& only) : queues_{&only} {}  // NOLINT: tx needs not know that there may be more
  Merger(std::vector<memory::UnitQueue*> queues, memory::PacketPool& pool, SplitOrder& order, LineBook* lines);
  /// Parts from several queues as they come, in turn.
  explicit Merger(std::vector<memory::UnitQueue*> queues) : queues_(std::move(queues)) {}

  /// The next unit; null: none yet. Parts that are quarantined come one by one, in front of the rest of their unit, and
  /// the lines of all of them with the last.
  memory::Unit* pop();
  /// Nothing comes any more.
  bool drained() const;

 private:
  void collect();
  void merge();
  void merge_slots(memory::Unit& whole);
  void merge_lines(memory::Unit& last);

  std::vector<memory::UnitQueue*> queues_;
  memory::PacketPool* pool_ = nullptr;  ///< null where parts are not put together
  std::size_t turn_ = 0;                ///< without it: the queue that is asked next
  SplitOrder* order_ = nullptr;
  LineBook* lines_ = nullptr;
  std::uint64_t missing_ = 0;         ///< shards whose part of the unit at hand is still to come
  std::vector<memory::Unit*> parts_;  ///< of the unit at hand
  std::deque<memory::Unit*> ready_;
  std::vector<std::uint32_t> slots_;  ///< of the unit that is being put together
};

}  // namespace catena::runtime
