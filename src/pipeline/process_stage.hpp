// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "packet/memory/unit_queue.hpp"
#include "pipeline/isolation/process.hpp"
#include "pipeline/process_records.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/unit_records.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace catena::runtime {

/// GPU partition of an NF in another process. Any thread.
class ProcessPart {
 public:
  /// Assigns the partition, in this incarnation of the process and the next ones.
  void give(nf_process::GpuPart part) { given_.store(part); }
  nf_process::GpuPart given() const { return given_.load(std::memory_order_relaxed); }
  /// Records the partition reported by the NF.
  void take(nf_process::GpuPart part) { taken_.store(part, std::memory_order_relaxed); }
  nf_process::GpuPart taken() const { return taken_.load(); }

 private:
  std::atomic<nf_process::GpuPart> given_{};
  std::atomic<nf_process::GpuPart> taken_{};
};

/// NFs in another process: one, or neighbours in the chain. Units go there as messages and return in order after all of
/// the NFs. Replies are checked before they count. A process that ends, violates the protocol or hangs loses its units:
/// their packets are dropped as `process_failed`, by the first of its NFs.
class ProcessStage final : public HostStage {
 public:
  /// `instances`: of the process, in order, the first at `position` of the chain. `limit`: maximum time of an NF for a
  /// unit before it counts as hung. `lines`: for the NFs' lines about packets; null: not wanted.
  ProcessStage(std::vector<nf::Instance*> instances, std::uint32_t position, nf_process::NfProcess& process,
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
  void bound(std::uint64_t packets) { max_there_ = packets; }
  /// Of NF number `nf` of the process.
  ProcessPart& part_of(std::size_t nf) { return *nfs_[nf].part; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Sent {
    memory::Unit* unit;
    std::uint32_t first_slot;  ///< of its frames in the memory of the process
    Clock::time_point at;
  };
  struct OfNf {
    nf::Instance* instance;
    std::unique_ptr<ProcessPart> part;
    nf_process::GpuPart given_part;   ///< in this incarnation
    std::vector<std::uint64_t> seen;  ///< of its counts, in this incarnation
  };
  void begin(std::shared_ptr<nf_process::Connection> connection);
  void exchange_parts();
  bool receive();
  Status take_lines_of(memory::Unit const& unit);
  Status take(Sent const& sent, std::span<const nf_process::PacketEntry> entries);
  void decide(packet::Packet const& packet, nf_process::PacketEntry const& entry);
  void prefetch_bytes(packet::Packet const& packet, nf_process::PacketEntry const& entry) const;
  void take_bytes(packet::Packet const& packet, nf_process::PacketEntry const& entry);
  void account(packet::Packet const& packet, nf_process::PacketEntry const& entry);
  bool send();
  std::uint32_t write(memory::Unit const& unit);
  std::byte* slot_of(std::uint32_t slot) const;
  void lose();
  bool drop_waiting();
  void drop(memory::Unit& unit);
  Progress find_end();

  std::vector<OfNf> nfs_;
  std::uint32_t position_;
  RecordLog* lines_;
  nf_process::NfProcess* process_;
  memory::PacketPool* pool_;
  memory::UnitQueue* in_;
  memory::UnitQueue* out_;
  std::chrono::milliseconds limit_;
  std::shared_ptr<nf_process::Connection> connection_;
  std::optional<nf_process::RingWriter> to_nf_;
  std::optional<nf_process::RingReader> of_host_;
  std::atomic<bool> keeps_process_{false};
  std::deque<Sent> sent_;  ///< the oldest first
  std::uint64_t max_there_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t there_ = 0;                       ///< packets in the process
  std::optional<ProcessRecords> records_;         ///< of this incarnation; nullopt: not wanted
  std::vector<nf_process::PacketEntry> entries_;  ///< private copy of the current message
  /// Free blocks of slots, each for a unit, by their first slots. The last one returned is used first, since it is
  /// still in the caches.
  std::vector<std::uint32_t> free_blocks_;
  Clock::time_point closed_at_;
};

}  // namespace catena::runtime
