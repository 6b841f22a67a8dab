// SPDX-License-Identifier: Apache-2.0
#include "pipeline/unit_replies.hpp"

#include "pipeline/process_reply.hpp"
#include "pipeline/recorder.hpp"

#include <catena/core/text.hpp>

#include <cstring>
#include <optional>

namespace catena::runtime {

using nf_process::PacketEntry;
using packet::Verdict;

namespace {

/// Those that are to be copied: of an NF that writes none, nothing leaves the cache of the core that it is on.
void prefetch_bytes(packet::Packet const& packet, PacketEntry const& entry, nf_process::Connection const& connection) {
  if (connection.field_mask.bytes_from_nf(packet.layers(), packet.length()) > 0) {
    __builtin_prefetch(connection.slot(entry.slot) + entry.offset);
  }
}

}  // namespace

/// All of it is checked before any of it counts.
Status UnitReplies::apply(std::span<const PacketEntry> reply, SentUnit const& sent, std::size_t units,
                          ProcessLink& link) {
  memory::Unit const& unit = *sent.unit;
  nf_process::Connection const& connection = link.connection();
  if (reply.size() != unit.count) {
    return absl::DataLossError(concat("a unit of ", unit.count, " packets has ", reply.size()));
  }
  entries_.assign(reply.begin(), reply.end());
  const packet::Batch batch = pool_->batch(unit);
  CATENA_RETURN_IF_ERROR(check_reply(entries_, batch,
                                     {.first_slot = sent.first_slot,
                                      .nfs = nfs_->size(),
                                      .outputs = nfs_->last().descriptor().packet_outputs.size(),
                                      .may_move = connection.field_mask.may_move()}));
  if (ProcessRecords* const records = link.records(); records != nullptr) {
    CATENA_RETURN_IF_ERROR(take_lines(unit, units, *records));
  }
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if (i + kCopyAhead < batch.size()) {
      prefetch_bytes(batch[i + kCopyAhead], entries_[i + kCopyAhead], connection);
    }
    if (is_alive(batch.meta().verdict[batch.slots()[i]])) {
      decide(batch[i], entries_[i], connection);
    }
  }
  return absl::OkStatus();
}

Status UnitReplies::take_lines(memory::Unit const& unit, std::size_t units, ProcessRecords& records) {
  // `entries_` says which NFs had the packet
  const packet::Batch batch = pool_->batch(unit);
  const auto had_packet = [&](std::uint32_t nf, std::uint64_t index) {
    const std::optional<std::uint32_t> i = find_packet(batch, index);
    return i && nf < nfs_->size() && is_alive(batch.meta().verdict[batch.slots()[*i]]) &&
           (is_alive(entries_[*i].verdict) || nf <= entries_[*i].nf);
  };
  const auto is_reason = [this](std::uint32_t nf, std::int32_t reason) {
    return reason >= -1 && reason < static_cast<std::int64_t>((*nfs_)[nf].outcome().drops().size());
  };
  return records.take(units, had_packet, is_reason, position_, lines_->of(unit));
}

void UnitReplies::decide(packet::Packet const& packet, PacketEntry const& entry,
                         nf_process::Connection const& connection) {
  if (entry.verdict != static_cast<std::uint8_t>(Verdict::kDrop)) {
    take_bytes(packet, entry, connection);
    if (connection.field_mask.may_set_port()) {
      packet.set_port(entry.port);
    }
    packet.set_mtu(entry.mtu);
  }
  account(packet, entry);
}

/// What the NF may have changed, into the chain's own memory. Nobody else can change it then: what is parsed is what
/// later NFs read.
void UnitReplies::take_bytes(packet::Packet const& packet, PacketEntry const& entry,
                             nf_process::Connection const& connection) {
  nf_process::FieldMask const& field_mask = connection.field_mask;
  std::uint32_t bytes = entry.length;
  if (has_bounds_of(entry, packet)) {  // an answer is not among the writes that an NF announces
    bytes = entry.verdict == static_cast<std::uint8_t>(Verdict::kReply)
                ? field_mask.bytes_to_nf(packet.layers(), packet.length())
                : field_mask.bytes_from_nf(packet.layers(), packet.length());
  }
  if (bytes == 0) {
    return;
  }
  std::memcpy(pool_->slot(packet.slot()) + entry.offset, connection.slot(entry.slot) + entry.offset, bytes);
  packet.set_extent(entry.offset, entry.length);
  packet.reparse();
}

/// As each NF would have counted it in this process.
void UnitReplies::account(packet::Packet const& packet, PacketEntry const& entry) {
  const std::size_t had = is_alive(entry.verdict) ? nfs_->size() : std::size_t{entry.nf} + 1;
  for (std::size_t i = 0; i < had; ++i) {
    ++(*nfs_)[i].counters().in;
    if ((entry.alerts >> i & 1U) != 0) {
      (*nfs_)[i].outcome().alert(packet);
    }
  }
  if (is_alive(entry.verdict) && entry.output >= nf::kOwnOutputs) {
    nfs_->last().outcome().leave_by(packet, static_cast<std::uint8_t>(entry.output - nf::kOwnOutputs));
  }
  if (static_cast<Verdict>(entry.verdict) == Verdict::kDrop) {
    (*nfs_)[entry.nf].outcome().drop(packet, entry.reason);
  } else if (static_cast<Verdict>(entry.verdict) == Verdict::kReply) {
    (*nfs_)[entry.nf].outcome().reply(packet);
  }
}

void UnitReplies::drop(memory::Unit const& unit) {
  nf::Instance& first = nfs_->first();
  first.drop_alive(pool_->batch(unit), nf::FrameworkReason::kProcessFailed);
  if (lines_ != nullptr) {
    runtime::take_lines(first, position_, pool_->batch(unit), lines_->of(unit));
  }
}

}  // namespace catena::runtime
