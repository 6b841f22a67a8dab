// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "packet/memory/packet_pool.hpp"
#include "pipeline/process_link.hpp"
#include "pipeline/process_nfs.hpp"
#include "pipeline/unit_records.hpp"
#include "pipeline/units_in_process.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace catena::runtime {

/// Applies the replies of an NF process to the packets, outcomes and lines of this process, as if its NFs ran here. One
/// thread.
class UnitReplies {
 public:
  /// `position`: of the first NF in the chain. `lines`: null if not wanted. All of it outlives this.
  UnitReplies(ProcessNfs& nfs, std::uint32_t position, memory::PacketPool& pool, RecordLog* lines)
      : nfs_(&nfs), position_(position), pool_(&pool), lines_(lines) {}

  bool has_lines() const { return lines_ != nullptr; }
  /// Checks a reply about a unit, and applies it only if all of it is right. `units`: number of units in the process.
  /// `reply`: in memory of the process, read once. DataLoss, with the reason, if NFs cannot have made this of the
  /// packets, or as ProcessRecords::take().
  Status apply(std::span<const nf_process::PacketEntry> reply, SentUnit const& sent, std::size_t units,
               ProcessLink& link);
  /// No reply comes: drops the live packets of the unit, by the first NF.
  void drop(memory::Unit const& unit);

 private:
  Status take_lines(memory::Unit const& unit, std::size_t units, ProcessRecords& records);
  void decide(packet::Packet const& packet, nf_process::PacketEntry const& entry,
              nf_process::Connection const& connection);
  void take_bytes(packet::Packet const& packet, nf_process::PacketEntry const& entry,
                  nf_process::Connection const& connection);
  void account(packet::Packet const& packet, nf_process::PacketEntry const& entry);

  ProcessNfs* nfs_;
  std::uint32_t position_;
  memory::PacketPool* pool_;
  RecordLog* lines_;
  std::vector<nf_process::PacketEntry> entries_;  ///< private copy of the current reply
};

}  // namespace catena::runtime
