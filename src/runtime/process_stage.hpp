// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/packet_pool.hpp"
#include "memory/unit_queue.hpp"
#include "nf/instance.hpp"
#include "nf_process/process.hpp"
#include "runtime/stage.hpp"
#include "runtime/succession.hpp"
#include "runtime/unit_lines.hpp"

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

/// The part of a GPU that an NF in another process has. Any thread.
class ProcessPart {
 public:
  /// The NF is to keep to this part, in this life of its process and the next ones.
  void give(nf_process::GpuPart part) { given_.store(part); }
  nf_process::GpuPart given() const { return given_.load(std::memory_order_relaxed); }
  /// Which one it says that it has.
  void take(nf_process::GpuPart part) { taken_.store(part, std::memory_order_relaxed); }
  nf_process::GpuPart taken() const { return taken_.load(); }

 private:
  std::atomic<nf_process::GpuPart> given_{};
  std::atomic<nf_process::GpuPart> taken_{};
};

/// NFs in another process: one, or neighbours in the chain. Units go there as messages and come back in order when all
/// of them had them; what comes back is checked before it counts. A process that ends, lies or does not answer loses
/// the units that it has: their packets are dropped as `process_failed`, by the first of its NFs.
class ProcessStage final : public HostStage {
 public:
  /// `instances`: those of the process, in order, the first at `position` of the chain. `limit`: how long an NF may
  /// take for a unit before it counts as one that hangs. `lines`: where what NFs say about packets goes; null: nobody
  /// asked them.
  ProcessStage(std::vector<nf::Instance*> instances, std::uint32_t position, nf_process::NfProcess& process,
               memory::PacketPool& pool, memory::UnitQueue& in, memory::UnitQueue& out, std::chrono::milliseconds limit,
               LineBook* lines = nullptr);
  Result<Progress> poll() override;
  bool is_passive() const override { return true; }
  std::vector<int> sockets() const override { return {process_->bell()}; }
  /// A process that takes the place of this stage's, with as many NFs that are as these.
  struct Next {
    std::vector<std::unique_ptr<nf::Instance>> instances;  ///< they have the process
    nf_process::NfProcess* process = nullptr;
  };
  Succession<Next>& successors() { return successors_; }
  /// From here on no unit goes there while `packets` or more have not come back. Before the first poll.
  void bound(std::uint64_t packets) { most_there_ = packets; }
  /// Of NF number `nf` of the process.
  ProcessPart& part_of(std::size_t nf) { return *nfs_[nf].part; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Sent {
    memory::Unit* unit;
    std::uint32_t first_slot;  ///< of its frames in the memory that the process has
    Clock::time_point at;
  };
  /// What the process said about the packets of a unit.
  struct Said {
    std::vector<nf_process::RecordOf> records;
    std::vector<nf_process::AlertOf> alerts;
    std::size_t bytes = 0;  ///< about as much memory as that takes
  };
  struct OfNf {
    nf::Instance* instance;
    std::unique_ptr<ProcessPart> part;
    nf_process::GpuPart given_part;   ///< in this life
    std::vector<std::uint64_t> seen;  ///< of its counts, in this life
  };
  void begin(std::shared_ptr<nf_process::Link> link);
  void exchange_parts();
  bool receive();
  Status gather_lines();
  Status take_lines_of(memory::Unit const& unit);
  Status check_lines(Said const& said, packet::Batch const& batch) const;
  Status take(Sent const& sent, std::span<const nf_process::PacketEntry> entries);
  Status check(packet::Batch const& batch, std::uint32_t first_slot) const;
  bool is_sound(nf_process::PacketEntry const& entry, packet::Packet const& packet) const;
  void decide(packet::Packet const& packet, nf_process::PacketEntry const& entry);
  void prefetch_bytes(packet::Packet const& packet, nf_process::PacketEntry const& entry) const;
  void take_bytes(packet::Packet const& packet, nf_process::PacketEntry const& entry);
  void account(packet::Packet const& packet, nf_process::PacketEntry const& entry);
  bool send();
  memory::Unit* take_unit();
  void take_next(std::uint32_t version);
  std::uint32_t write(memory::Unit const& unit);
  std::byte* slot_of(std::uint32_t slot) const;
  void take_counts(std::size_t nf);
  void lose();
  bool drop_waiting();
  void drop(memory::Unit& unit);
  Progress look_for_end();

  std::vector<OfNf> nfs_;
  std::uint32_t position_;
  LineBook* lines_;
  nf_process::NfProcess* process_;
  memory::PacketPool* pool_;
  memory::UnitQueue* in_;
  memory::UnitQueue* out_;
  std::chrono::milliseconds limit_;
  std::shared_ptr<nf_process::Link> link_;
  std::optional<nf_process::LaneWriter> to_nf_;
  std::optional<nf_process::LaneReader> of_host_;
  Succession<Next> successors_;
  memory::Unit* held_ = nullptr;  ///< the first of another version, while those before are in the process
  std::deque<Sent> sent_;         ///< the oldest first
  std::uint64_t most_there_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t there_ = 0;  ///< packets of what was sent
  std::optional<nf_process::LineReader> lines_of_host_;
  std::deque<Said> said_;  ///< about units that have not come back, the last one is not complete
  std::size_t said_bytes_ = 0;
  std::vector<nf_process::PacketEntry> entries_;  ///< of the message at hand, which nobody else can change
  /// Blocks of slots, each for a unit, that none is in; by their first slots. What came back last is used first: it is
  /// still in the caches.
  std::vector<std::uint32_t> free_blocks_;
  Clock::time_point closed_at_;
};

}  // namespace catena::runtime
