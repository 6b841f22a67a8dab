// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/graph.hpp"
#include "memory/packet_pool.hpp"
#include "memory/unit_queue.hpp"
#include "runtime/stage.hpp"
#include "runtime/unit_lines.hpp"
#include "runtime/unit_reserve.hpp"

#include <catena/core/counter.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace catena::runtime {

/// Behind rx, or an NF, from which packets go several ways: divides each unit by a steering table. A unit whose packets
/// all go one way goes on as it is; else each way gets a part, without a copy of a packet, and packets that go the same
/// way keep their order. What ended goes to tx. A mirror's copies are packets of their own, with the number of the one
/// that they were made of; on a device there is nothing of them.
class SteerStage final : public HostStage {
 public:
  /// `from`: name of the NF, or "rx". `out`: the queues of the table's targets, in their order. `ended`: that of tx,
  /// which may be one of them. Everything outlives this. `lines`: null in a chain that writes none. To be made behind
  /// the stages that packets meet before it.
  SteerStage(std::string const& from, chain::SteerTable const& table, memory::PacketPool& pool, memory::UnitQueue& in,
             std::vector<memory::UnitQueue*> out, memory::UnitQueue& ended, UnitReserve& reserve,
             LineBook* lines = nullptr);
  /// ResourceExhausted where a device that never answered keeps so much that it could not go on.
  Result<Progress> poll() override;
  bool is_passive() const override { return true; }
  std::string const& from() const { return from_; }
  chain::SteerTable const& table() const { return *table_; }
  // Of packets that were alive. Any thread.
  std::uint64_t sent_to(std::size_t target) const { return sent_[target]; }
  std::uint64_t mirrored_to(std::size_t target) const { return mirrored_[target]; }
  std::uint64_t dropped() const { return dropped_; }      ///< by a row
  std::uint64_t unmatched() const { return unmatched_; }  ///< dropped, as no row took them
  std::uint64_t malformed() const { return malformed_; }  ///< dropped, as a row asks for ports that they hide

 private:
  bool is_ready();
  void steer(memory::Unit* unit);
  std::size_t decide(packet::Batch const& packets);
  void divide(memory::Unit* unit);
  Counter* drops_of(std::uint8_t decision);
  memory::Unit& part(std::size_t number, memory::Unit const& unit);
  void divide_lines(memory::Unit const& unit);
  void close();

  std::string from_;
  chain::SteerTable const* table_;
  memory::PacketPool* pool_;
  memory::UnitQueue* in_;
  /// Of the targets, and tx where it is none.
  std::vector<memory::UnitQueue*> out_;
  std::size_t ended_;                       ///< position of tx in out_
  std::vector<std::size_t> mirrored_ways_;  ///< positions in out_ of what gets copies
  UnitReserve* reserve_;
  std::uint32_t number_;  ///< in the reserve
  LineBook* lines_;
  /// An empty unit for what goes to each of out_, and behind them for the copies to each of mirrored_ways_; null: to be
  /// taken.
  std::vector<memory::Unit*> parts_;
  std::vector<std::uint32_t> spare_slots_;  ///< for copies
  std::uint32_t used_slots_ = 0;
  bool has_copies_ = false;             ///< of packets of the unit at hand
  std::vector<std::uint8_t> ways_;      ///< of the unit at hand: for each packet a position in out_
  std::vector<std::uint64_t> mirrors_;  ///< and the targets that get a copy of it
  std::vector<Counter> sent_;
  std::vector<Counter> mirrored_;
  Counter dropped_;
  Counter unmatched_;
  Counter malformed_;
};

}  // namespace catena::runtime
