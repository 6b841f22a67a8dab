// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "packet/memory/unit_queue.hpp"
#include "pipeline/isolation/process.hpp"
#include "pipeline/process_deadlines.hpp"
#include "pipeline/process_link.hpp"
#include "pipeline/process_nfs.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/unit_records.hpp"
#include "pipeline/unit_replies.hpp"
#include "pipeline/units_in_process.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace catena::runtime {

/// NFs in another process: one, or neighbours in the chain. Units go there as messages and return in order after all of
/// the NFs. Replies are checked before they count. A process that ends, violates the protocol or hangs loses its units:
/// their packets are dropped as `process_failed`, by the first of its NFs.
class ProcessStage final : public HostStage {
 public:
  /// `instances`: of the process, in order, the first at `position` of the chain. `limit`: maximum time of an NF for a
  /// unit before it counts as hung. `lines`: for the NFs' lines about packets; null: not wanted.
  ProcessStage(std::vector<nf::Instance*> const& instances, std::uint32_t position, nf_process::NfProcess& process,
               memory::PacketPool& pool, memory::UnitQueue& in, memory::UnitQueue& out, std::chrono::milliseconds limit,
               RecordLog* lines = nullptr);
  Result<Progress> poll() override;
  bool is_passive() const override { return true; }
  std::vector<int> sockets() const override { return {process_->notifier()}; }
  /// Its process continues after the last packet, in the stage that calls continue_from(). Any thread.
  void keep_process() { keeps_process_ = true; }
  /// Takes the process over from the stage of the same process in the chain before, which has finished. Before the
  /// first poll.
  void continue_from(ProcessStage& before);
  /// Sends no unit while `packets` or more have not returned. Before the first poll.
  void bound(std::uint64_t packets) { units_.bound(packets); }
  /// Of NF number `nf` of the process.
  ProcessPart& part_of(std::size_t nf) { return nfs_.part_of(nf); }

 private:
  using Clock = std::chrono::steady_clock;
  void connect();
  bool exchange(bool may_take);
  bool receive();
  Status take(std::span<const nf_process::PacketEntry> reply);
  bool send();
  void lose();
  bool drop_waiting();
  void drop(memory::Unit& unit);
  Progress find_end();
  bool end_process();

  nf_process::NfProcess* process_;
  memory::PacketPool* pool_;
  memory::UnitQueue* in_;
  memory::UnitQueue* out_;
  ProcessNfs nfs_;
  UnitReplies replies_;
  UnitsInProcess units_;
  ProcessDeadlines deadlines_;
  std::optional<ProcessLink> link_;  ///< nullopt: no incarnation has room for packets
  std::atomic<bool> keeps_process_{false};
};

}  // namespace catena::runtime
