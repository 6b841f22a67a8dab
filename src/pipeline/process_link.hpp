// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/packet_pool.hpp"
#include "pipeline/isolation/connection.hpp"
#include "pipeline/process_records.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace catena::runtime {

/// Packets between the one copied and the one whose bytes are fetched from another core's cache meanwhile.
inline constexpr std::uint32_t kCopyAhead = 8;

/// This end of the connection to one incarnation of an NF process: writes units into its memory, and reads its replies.
/// One thread. A reply answers the oldest unit without a reply.
class ProcessLink {
 public:
  /// `notifier`: of the process, which outlives this. `has_lines`: lines about packets are wanted, and the channel has
  /// them.
  ProcessLink(std::shared_ptr<nf_process::Connection> connection, int notifier, bool has_lines);

  nf_process::Connection const& connection() const { return *connection_; }
  /// Whether the process has ended. If so, poll() still returns the replies made before.
  bool is_gone() const { return connection_->is_gone.load(std::memory_order_acquire); }
  /// Of the lines about packets; null: not wanted.
  ProcessRecords* records() { return records_ ? &*records_ : nullptr; }

  /// Whether a unit has room in the memory of the process.
  bool has_room() const { return !free_blocks_.empty(); }
  /// Sends a unit: the fields of its packets that the NFs read, and the metadata. Returns the first slot of its frames
  /// in the memory of the process. Precondition: has_room().
  std::uint32_t write(memory::Unit const& unit, memory::PacketPool const& pool);
  /// Call after one or several write().
  void wake() { to_nf_.wake(); }
  /// The next reply, in memory that the process may still change; nullopt: no reply has come. DataLoss if the process
  /// reports impossible numbers.
  Result<std::optional<std::span<const nf_process::PacketEntry>>> poll() { return of_host_.poll(); }
  /// The last reply was read, and the frames of its unit, from `first_slot` on, are not used any more.
  void release(std::uint32_t first_slot);

  /// No unit follows. `reason`: as nf_process::RingWriter::close(). No effect if it was called before.
  void close(std::uint32_t reason);
  bool is_closed() const { return connection_->is_closed; }

 private:
  void write_entries(memory::Unit const& unit, packet::MetaColumns const& meta, std::uint32_t first_slot);
  void write_frames(memory::Unit const& unit, memory::PacketPool const& pool, std::uint32_t first_slot);

  std::shared_ptr<nf_process::Connection> connection_;
  nf_process::RingWriter to_nf_;
  nf_process::RingReader of_host_;
  std::optional<ProcessRecords> records_;
  /// Free blocks of slots, each for a unit, by their first slots. The last one returned is used first, since it is
  /// still in the caches.
  std::vector<std::uint32_t> free_blocks_;
};

}  // namespace catena::runtime
