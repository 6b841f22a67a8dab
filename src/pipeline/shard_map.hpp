// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "packet/memory/unit_queue.hpp"
#include "pipeline/buffer_reservation.hpp"
#include "pipeline/unit_records.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

/// From one source to the shards of a chain, and back to one sink. A unit from rx is divided into parts, one for each
/// shard with packets in it. tx merges them again, and so does a reshard stage between NFs with different sharding. So
/// packets leave in arrival order, and the outputs of a chain do not depend on the number of shards.
namespace catena::runtime {

/// Which shards have a part of each unit, in unit order. One thread pushes, one pops.
class SplitOrder {
 public:
  /// Capacity: at least `units`.
  explicit SplitOrder(std::uint32_t units);
  /// `shards`: a bit for each, at least one. Precondition: not full.
  void push(std::uint64_t shards);
  /// 0 if empty.
  std::uint64_t pop();

 private:
  std::vector<std::uint64_t> ring_;
  alignas(64) std::atomic<std::uint64_t> pushed_{0};
  alignas(64) std::atomic<std::uint64_t> popped_{0};
};

/// Maps packets to shards. Belongs to one thread at a time.
class ShardMap {
 public:
  /// By flow_hash() with `key`.
  ShardMap(std::uint32_t shards, std::uint64_t key) : shards_(shards), key_(key) {}
  /// By the sharder of `nf`, which outlives this, for packets that the NF decides; by flow for others, or if it gives
  /// no shard.
  ShardMap(std::uint32_t shards, std::uint64_t key, nf::Instance const& nf)
      : shards_(shards), key_(key), nf_(&nf), sharder_(nf.nf().sharder()) {}

  std::uint32_t shards() const { return shards_; }
  std::uint32_t shard_of(packet::Packet const& packet);
  /// By flow.
  std::uint32_t shard_of(packet::FlowKey const& flow) const;

 private:
  std::uint32_t shards_;
  std::uint64_t key_;
  nf::Instance const* nf_ = nullptr;
  std::unique_ptr<nf::Sharder> sharder_;
};

/// The output of rx, or of a reshard stage: passes units to one queue, or parts of them to several. Belongs to one
/// thread at a time.
class Splitter {
 public:
  /// All units to one queue, as they are. `reserve`: of downstream splitters; null: no such splitters.
  Splitter(memory::UnitQueue& only, BufferReservation* reserve = nullptr)  // NOLINT: rx need not know of several
      : queues_{&only}, reserve_(reserve) {}
  /// Parts, one queue for each shard of the shard map; everything else outlives this. `order`: null if parts are not
  /// merged again. `lines`: null if the chain writes no lines. Create it after all upstream splitters.
  Splitter(std::vector<memory::UnitQueue*> queues, memory::PacketPool& pool, SplitOrder* order, ShardMap shard_map,
           RecordLog* lines, BufferReservation& reserve);

  /// Maximum number of empty units for it and all downstream splitters at once.
  std::uint32_t units_wanted() const { return reserve_ == nullptr ? 0 : reserve_->wanted_from(number_); }
  /// The same for slots for copies.
  std::uint32_t slots_wanted() const { return reserve_ == nullptr ? 0 : reserve_->slots_wanted_from(number_); }
  /// Whether all pushed units have been popped.
  bool empty() const;
  /// Whether push() has the empty units that it needs. Call before push(). If false, units in flight will return.
  bool is_ready();
  /// An empty unit of `pool` for rx, together with the empty units for its push(); null if not available now.
  memory::Unit* take_unit(memory::PacketPool& pool);
  /// Returns an unused unit of take_unit().
  void give_back(memory::PacketPool& pool, memory::Unit* unit);
  /// Takes the unit, which is not empty. With one queue, units may wait for others until flush().
  void push(memory::Unit* unit);
  /// The same for a unit received before the NFs have their state: it is divided by push_kept() only, because an NF's
  /// sharder may depend on this state.
  void keep(memory::Unit* unit);
  /// Pushes the kept units. False if some have to wait for empty units: call again.
  bool push_kept();
  /// Makes all pushed units available to pop. Call when no more units are at hand.
  void flush();
  /// No more units follow.
  void close();

 private:
  bool take_spares(memory::PacketPool& pool);
  std::uint64_t divide(memory::Unit const& unit);
  void start_part(memory::Unit& part, memory::Unit const& unit) const;
  void split_lines(memory::Unit const& unit, std::uint64_t shards);

  std::vector<memory::UnitQueue*> queues_;
  BufferReservation* reserve_;          ///< null if no other stage takes units
  std::uint32_t number_ = 0;            ///< in the reserve
  memory::PacketPool* pool_ = nullptr;  ///< null with one queue
  SplitOrder* order_ = nullptr;         ///< null if parts are not merged again
  std::optional<ShardMap> shard_map_;
  RecordLog* lines_ = nullptr;
  std::vector<memory::Unit*> parts_;    ///< an empty unit for each queue; null: to be taken
  std::vector<memory::Unit*> waiting_;  ///< with one queue: units to push together; else: kept ones
  std::uint32_t waiting_packets_ = 0;
  memory::PacketPool* spare_pool_ = nullptr;
  std::vector<memory::Unit*> spares_;  ///< if no other stage takes units: empty ones of spare_pool_, taken together
};

/// The input of tx, or of a reshard stage: takes units from one queue, or from several and may merge their parts.
/// Belongs to one thread at a time.
class Merger {
 public:
  Merger(memory::UnitQueue& only) : queues_{&only} {}  // NOLINT: tx need not know of several
  Merger(std::vector<memory::UnitQueue*> queues, memory::PacketPool& pool, SplitOrder& order, RecordLog* lines);
  /// Parts from several queues as they come, round-robin.
  explicit Merger(std::vector<memory::UnitQueue*> queues) : queues_(std::move(queues)) {}

  /// The next unit; null if not available yet. Quarantined parts come one by one, before the rest of their unit; the
  /// lines of all parts come with the last.
  memory::Unit* pop();
  /// No more units follow.
  bool drained() const;

 private:
  void collect();
  void merge();
  void merge_slots(memory::Unit& whole);
  void merge_lines(memory::Unit& last);

  std::vector<memory::UnitQueue*> queues_;
  memory::PacketPool* pool_ = nullptr;  ///< null if parts are not merged
  std::size_t turn_ = 0;                ///< without it: the next queue to poll
  SplitOrder* order_ = nullptr;
  RecordLog* lines_ = nullptr;
  std::uint64_t missing_ = 0;         ///< shards whose part of the current unit is missing
  std::vector<memory::Unit*> parts_;  ///< of the current unit
  std::deque<memory::Unit*> ready_;
  std::vector<std::uint32_t> slots_;  ///< of the unit being merged
};

}  // namespace catena::runtime
