// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/isolation/channel.hpp"

#include <catena/core/status.hpp>
#include <catena/packet/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace catena::runtime {

/// Limits of a reply of an NF process.
struct ReplyLimits {
  std::uint32_t first_slot = 0;  ///< of the unit's frames in the memory of the process
  std::size_t nfs = 0;           ///< of the process
  std::size_t outputs = 0;       ///< own outputs of the last NF
  bool may_move = false;         ///< whether an NF may change the bounds of a packet
};

/// Whether the next NF gets the packet with this verdict.
inline bool is_alive(std::uint8_t verdict) { return packet::ended(verdict) == 0; }
/// Whether the frame is where it was before.
inline bool has_bounds_of(nf_process::PacketEntry const& entry, packet::Packet const& packet) {
  return entry.offset == packet.offset() && entry.length == packet.length();
}
/// The position in `batch`, whose packets are in order, of the packet with this index; nullopt: it is not in it.
std::optional<std::uint32_t> find_packet(packet::Batch const& batch, std::uint64_t index);
/// Checks a reply of an NF process about the packets of a unit. `entries`: one for each packet, in this process's own
/// memory. DataLoss, with the reason, if NFs cannot have made this of the packets.
Status check_reply(std::span<const nf_process::PacketEntry> entries, packet::Batch const& batch,
                   ReplyLimits const& limits);

}  // namespace catena::runtime
