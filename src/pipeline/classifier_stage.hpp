// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/graph.hpp"
#include "packet/memory/packet_pool.hpp"
#include "packet/memory/unit_queue.hpp"
#include "pipeline/buffer_reservation.hpp"
#include "pipeline/part_buffers.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/unit_classifier.hpp"
#include "pipeline/unit_records.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace catena::runtime {

/// A branch after rx or an NF: divides each unit by a NextNodeTable. If all packets of a unit take one branch, the
/// unit is passed on as it is. Otherwise each branch gets a part, without copies of packets; packets of a branch keep
/// their order. Packets that have ended go to tx. Copies of a mirror are separate packets, with the number of the
/// original; they have no data on a device.
class ClassifierStage final : public HostStage {
 public:
  /// `from`: name of the NF, or "rx". `out`: the queues of the table's targets, in their order. `ended`: the queue of
  /// tx, which may be one of them. Everything outlives this. `lines`: null if the chain writes no lines. Create it
  /// after all upstream stages.
  ClassifierStage(std::string const& from, chain::NextNodeTable const& table, memory::PacketPool& pool,
                  memory::UnitQueue& in, std::vector<memory::UnitQueue*> out, memory::UnitQueue& ended,
                  BufferReservation& reserve, RecordLog* lines = nullptr);
  /// ResourceExhausted if a device that never answered keeps too much to continue.
  Result<Progress> poll() override;
  bool is_passive() const override { return true; }
  std::string const& from() const { return from_; }
  chain::NextNodeTable const& table() const { return classifier_.table(); }
  // Of packets that were alive. Any thread.
  std::uint64_t sent_to(std::size_t target) const { return classifier_.sent_to(target); }
  std::uint64_t mirrored_to(std::size_t target) const { return classifier_.mirrored_to(target); }
  std::uint64_t dropped() const { return classifier_.dropped(); }      ///< by a row
  std::uint64_t unmatched() const { return classifier_.unmatched(); }  ///< dropped, as no row matched
  std::uint64_t malformed() const { return classifier_.malformed(); }  ///< dropped, as a row needs their hidden ports

 private:
  void classify(memory::Unit* unit);
  void divide(memory::Unit* unit);
  void divide_lines(memory::Unit const& unit);
  void close();

  std::string from_;
  memory::PacketPool* pool_;
  memory::UnitQueue* in_;
  /// Of the targets, and of tx if it is not a target.
  std::vector<memory::UnitQueue*> out_;
  std::size_t ended_;                           ///< position of tx in out_
  std::vector<std::size_t> mirrored_branches_;  ///< positions in out_ of the receivers of copies
  RecordLog* lines_;
  UnitClassifier classifier_;
  PartBuffers buffers_;  ///< for out_, followed by mirrored_branches_
};

}  // namespace catena::runtime
