// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/packet_pool.hpp"
#include "memory/unit_queue.hpp"
#include "nf/instance.hpp"
#include "nf_process/process.hpp"
#include "runtime/stage.hpp"
#include "runtime/unit_lines.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace catena::runtime {

/// An NF in a process of its own. Units go there as messages and come back in order; what comes back is checked before
/// it counts. A process that ends, lies or does not answer loses the units that it has: their packets are dropped as
/// `process_failed`.
class ProcessStage final : public HostStage {
 public:
  /// `position`: of the NF in the chain. `limit`: how long the NF may take for a unit before it counts as one that
  /// hangs. `lines`: where what it says about packets goes; null: nobody asked it.
  ProcessStage(nf::Instance& instance, std::uint32_t position, nf_process::NfProcess& process, memory::PacketPool& pool,
               memory::UnitQueue& in, memory::UnitQueue& out, std::chrono::milliseconds limit,
               LineBook* lines = nullptr);
  Result<Progress> poll() override;
  bool is_passive() const override { return true; }
  std::vector<int> sockets() const override { return {process_->bell()}; }
  /// The NF is to keep to this part of its GPU, in this life and the next ones. Any thread.
  void give_part(nf_process::GpuPart part) { part_.store(part); }
  /// Which one it says that it has. Any thread.
  nf_process::GpuPart taken_part() const { return taken_part_.load(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Sent {
    memory::Unit* unit;
    std::uint32_t first_slot;  ///< of its frames in the memory that the process has
    Clock::time_point at;
  };
  void begin(std::shared_ptr<nf_process::Link> link);
  void exchange_parts();
  bool receive();
  Status gather_lines();
  Status take_lines_of(memory::Unit const& unit);
  Status take(Sent const& sent, std::span<const nf_process::PacketEntry> entries);
  Status check(packet::Batch const& batch, std::uint32_t first_slot) const;
  void decide(packet::Packet const& packet, nf_process::PacketEntry const& entry);
  void take_bytes(packet::Packet const& packet, nf_process::PacketEntry const& entry);
  bool send();
  std::uint32_t write(memory::Unit const& unit);
  std::byte* slot_of(std::uint32_t slot) const;
  void take_counts();
  void lose();
  bool drop_waiting();
  void drop(memory::Unit& unit);
  Progress look_for_end();

  /// What the process said about the packets of a unit.
  struct Said {
    std::vector<nf::RecordLine> records;
    std::vector<nf::AlertLine> alerts;
    std::size_t bytes = 0;  ///< about as much memory as that takes
  };

  nf::Instance* instance_;
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
  std::deque<Sent> sent_;  ///< the oldest first
  std::optional<nf_process::LineReader> lines_of_host_;
  std::deque<Said> said_;  ///< about units that have not come back, the last one is not complete
  std::size_t said_bytes_ = 0;
  std::vector<nf_process::PacketEntry> entries_;  ///< of the message at hand, which nobody else can change
  /// Blocks of slots, each for a unit, that none is in; by their first slots. What came back last is used first: it is
  /// still in the caches.
  std::vector<std::uint32_t> free_blocks_;
  std::vector<std::uint64_t> seen_;               ///< of the counts, in this life
  Clock::time_point closed_at_;
  std::atomic<nf_process::GpuPart> part_{};
  nf_process::GpuPart given_part_;  ///< in this life
  std::atomic<nf_process::GpuPart> taken_part_{};
};

}  // namespace catena::runtime
