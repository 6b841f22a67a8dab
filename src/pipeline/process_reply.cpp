// SPDX-License-Identifier: Apache-2.0
#include "pipeline/process_reply.hpp"

#include "nf/instance.hpp"

#include <catena/packet/headers.hpp>

#include <algorithm>

namespace catena::runtime {

using nf_process::PacketEntry;
using packet::Verdict;

namespace {

/// Whether NFs may have made this of a packet: none has one after it was dropped or became a reply.
bool is_sound(PacketEntry const& entry, packet::Packet const& packet, ReplyLimits const& limits) {
  const std::size_t had = is_alive(entry.verdict) ? limits.nfs : std::size_t{entry.nf} + 1;
  // a capture may have less than an Ethernet header; there are NICs whose queues stop at such a frame
  return entry.verdict <= static_cast<std::uint8_t>(Verdict::kReply) &&
         (entry.length >= packet::kEthernetBytes || has_bounds_of(entry, packet)) &&
         std::uint32_t{entry.offset} + entry.length <= packet::kSlotBytes &&
         (entry.mtu == 0 || entry.mtu >= packet::kMinMtu) && had <= limits.nfs &&
         entry.output < nf::kOwnOutputs + limits.outputs && std::uint64_t{entry.alerts} >> had == 0;
}

}  // namespace

std::optional<std::uint32_t> find_packet(packet::Batch const& batch, std::uint64_t index) {
  std::uint64_t const* const indices = batch.meta().index;
  const std::span<const std::uint32_t> slots = batch.slots();
  const auto found = std::ranges::lower_bound(slots, index, {}, [&](std::uint32_t slot) { return indices[slot]; });
  return found != slots.end() && indices[*found] == index
             ? std::optional(static_cast<std::uint32_t>(found - slots.begin()))
             : std::nullopt;
}

Status check_reply(std::span<const PacketEntry> entries, packet::Batch const& batch, ReplyLimits const& limits) {
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    PacketEntry const& entry = entries[i];
    if (entry.slot != limits.first_slot + i) {
      return absl::DataLossError("a packet is not in its slot");
    }
    const packet::Packet packet = batch[i];
    if (!is_alive(static_cast<std::uint8_t>(packet.verdict()))) {
      continue;
    }
    if (!is_sound(entry, packet, limits)) {
      return absl::DataLossError("a packet has invalid bounds or an invalid verdict");
    }
    if (!limits.may_move && is_alive(entry.verdict) && !has_bounds_of(entry, packet)) {
      return absl::DataLossError("a packet has other bounds, and `meta.length` is not in the writes of its NF");
    }
  }
  return absl::OkStatus();
}

}  // namespace catena::runtime
