// SPDX-License-Identifier: Apache-2.0
#include "pipeline/process_stage.hpp"

#include "base/ipc/ring.hpp"
#include "pipeline/process_counts.hpp"
#include "pipeline/process_reply.hpp"
#include "pipeline/recorder.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace catena::runtime {
namespace {

using nf_process::PacketEntry;
using packet::Verdict;

/// Beside the limit of a device that does not answer, for what an NF does on the CPU meanwhile.
constexpr std::chrono::seconds kGrace{5};
/// From the last packet to the end of a process that has something written all the time: a table of flows, say.
constexpr std::chrono::minutes kLongestEnd{10};
/// Packets between the one that is copied and the one whose bytes are fetched from another core's cache meanwhile.
constexpr std::uint32_t kPrefetchAhead = 8;

}  // namespace

ProcessStage::ProcessStage(std::vector<nf::Instance*> instances, std::uint32_t position, nf_process::NfProcess& process,
                           memory::PacketPool& pool, memory::UnitQueue& in, memory::UnitQueue& out,
                           std::chrono::milliseconds limit, RecordLog* lines)
    : HostStage(instances.front()->name()),
      position_(position),
      lines_(lines),
      process_(&process),
      pool_(&pool),
      in_(&in),
      out_(&out),
      limit_(limit * instances.size() + kGrace) {
  for (nf::Instance* instance : instances) {
    nfs_.push_back({instance, std::make_unique<ProcessPart>(), {}, {}});
  }
}

Result<Progress> ProcessStage::poll() {
  for (OfNf const& nf : nfs_) {
    nf.instance->board().answer(nf.instance->nf());
  }
  const bool may_take = this->may_take();
  bool worked = false;
  if (connection_ == nullptr) {
    if (auto connection = process_->take_connection(); connection != nullptr) {
      begin(std::move(connection));
    }
  }
  if (connection_ != nullptr) {
    exchange_parts();
    const bool is_gone = connection_->is_gone.load(std::memory_order_acquire);  // then nothing more is written
    worked = receive();
    if (is_gone) {
      while (receive()) {  // what it gave back before it went
      }
      lose();
      worked = true;
    } else {
      worked = (may_take && send()) || worked;
    }
  } else {
    ipc::clear_wake_ups(process_->notifier());
    worked = process_->is_down() && drop_waiting();
  }
  return worked ? Progress::kWorked : find_end();
}

void ProcessStage::begin(std::shared_ptr<nf_process::Connection> connection) {
  connection_ = std::move(connection);
  to_nf_ = connection_->channel.writer_to_nf(process_->notifier());
  of_host_ = connection_->channel.reader_of_host(process_->notifier());
  if (lines_ != nullptr) {
    records_.emplace(connection_->channel.line_reader());
  }
  free_blocks_.clear();
  for (std::uint32_t block = connection_->channel.shape().depth; block > 0; --block) {
    free_blocks_.push_back((block - 1) * connection_->channel.shape().unit_packets);
  }
  for (OfNf& nf : nfs_) {
    nf.given_part = {};
    nf.seen.clear();
  }
}

void ProcessStage::continue_from(ProcessStage& before) {
  connection_ = std::move(before.connection_);
  to_nf_ = std::exchange(before.to_nf_, std::nullopt);
  of_host_ = std::exchange(before.of_host_, std::nullopt);
  records_ = std::exchange(before.records_, std::nullopt);
  free_blocks_ = std::move(before.free_blocks_);
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    nfs_[i].given_part = before.nfs_[i].given_part;
    nfs_[i].seen = std::move(before.nfs_[i].seen);
  }
}

void ProcessStage::exchange_parts() {
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    OfNf& nf = nfs_[i];
    if (const nf_process::GpuPart part = nf.part->given(); part != nf.given_part) {
      connection_->channel.give_part(i, part);
      nf.given_part = part;
    }
    nf.part->take(connection_->channel.taken_part(i));
  }
}

Status ProcessStage::take_lines_of(memory::Unit const& unit) {
  if (!records_) {
    return absl::OkStatus();
  }
  // `entries_` says which NFs had the packet
  const packet::Batch batch = pool_->batch(unit);
  const auto had_packet = [&](std::uint32_t nf, std::uint64_t index) {
    const std::optional<std::uint32_t> i = find_packet(batch, index);
    return i && nf < nfs_.size() && is_alive(batch.meta().verdict[batch.slots()[*i]]) &&
           (is_alive(entries_[*i].verdict) || nf <= entries_[*i].nf);
  };
  const auto is_reason = [this](std::uint32_t nf, std::int32_t reason) {
    return reason >= -1 && reason < static_cast<std::int64_t>(nfs_[nf].instance->outcome().drops().size());
  };
  return records_->take(sent_.size(), had_packet, is_reason, position_, lines_->of(unit));
}

bool ProcessStage::receive() {
  bool worked = false;
  if (const Status status = records_ ? records_->gather(sent_.size()) : absl::OkStatus(); !status.ok()) {
    process_->fail(*connection_, concat("NF process violated the protocol: ", std::string(status.message())));
    return false;
  }
  for (std::uint32_t packets = 0; packets < kPacketsAtOnce;) {
    const auto message = of_host_->poll();
    Status status = message.status();
    if (status.ok() && !message->has_value()) {
      break;
    }
    if (status.ok()) {
      status =
          sent_.empty() ? absl::DataLossError("it returns a unit it does not have") : take(sent_.front(), **message);
    }
    if (!status.ok()) {
      process_->fail(*connection_, concat("NF process violated the protocol: ", std::string(status.message())));
      break;
    }
    of_host_->take();
    packets += std::max(sent_.front().unit->count, 1U);
    count(sent_.front().unit->count);
    there_ -= sent_.front().unit->count;
    out_->push(sent_.front().unit);
    free_blocks_.push_back(sent_.front().first_slot);
    sent_.pop_front();
    worked = true;
  }
  for (std::size_t nf = 0; worked && nf < nfs_.size(); ++nf) {
    add_counts(connection_->channel.counts(nf), nfs_[nf].seen, nfs_[nf].instance->counters());
  }
  return worked;
}

/// All of it is checked before any of it counts.
Status ProcessStage::take(Sent const& sent, std::span<const PacketEntry> entries) {
  memory::Unit const& unit = *sent.unit;
  if (entries.size() != unit.count) {
    return absl::DataLossError(concat("a unit of ", unit.count, " packets has ", entries.size()));
  }
  entries_.assign(entries.begin(), entries.end());
  const packet::Batch batch = pool_->batch(unit);
  CATENA_RETURN_IF_ERROR(check_reply(entries_, batch,
                                     {.first_slot = sent.first_slot,
                                      .nfs = nfs_.size(),
                                      .outputs = nfs_.back().instance->descriptor().packet_outputs.size(),
                                      .may_move = connection_->field_mask.may_move()}));
  CATENA_RETURN_IF_ERROR(take_lines_of(unit));
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if (i + kPrefetchAhead < batch.size()) {
      prefetch_bytes(batch[i + kPrefetchAhead], entries_[i + kPrefetchAhead]);
    }
    if (is_alive(batch.meta().verdict[batch.slots()[i]])) {
      decide(batch[i], entries_[i]);
    }
  }
  return absl::OkStatus();
}

/// Those that take_bytes() is to copy: of an NF that writes none, nothing leaves the cache of the core that it is on.
void ProcessStage::prefetch_bytes(packet::Packet const& packet, PacketEntry const& entry) const {
  if (connection_->field_mask.bytes_from_nf(packet.layers(), packet.length()) > 0) {
    __builtin_prefetch(slot_of(entry.slot) + entry.offset);
  }
}

/// What the NF may have changed, into the chain's own memory. Nobody else can change it then: what is parsed is what
/// later NFs read.
void ProcessStage::take_bytes(packet::Packet const& packet, PacketEntry const& entry) {
  nf_process::FieldMask const& field_mask = connection_->field_mask;
  std::uint32_t bytes = entry.length;
  if (has_bounds_of(entry, packet)) {  // an answer is not among the writes that an NF announces
    bytes = entry.verdict == static_cast<std::uint8_t>(Verdict::kReply)
                ? field_mask.bytes_to_nf(packet.layers(), packet.length())
                : field_mask.bytes_from_nf(packet.layers(), packet.length());
  }
  if (bytes == 0) {
    return;
  }
  std::memcpy(pool_->slot(packet.slot()) + entry.offset, slot_of(entry.slot) + entry.offset, bytes);
  packet.set_extent(entry.offset, entry.length);
  packet.reparse();
}

void ProcessStage::decide(packet::Packet const& packet, PacketEntry const& entry) {
  if (entry.verdict != static_cast<std::uint8_t>(Verdict::kDrop)) {
    take_bytes(packet, entry);
    if (connection_->field_mask.may_set_port()) {
      packet.set_port(entry.port);
    }
    packet.set_mtu(entry.mtu);
  }
  account(packet, entry);
}

/// As each NF would have counted it in this process.
void ProcessStage::account(packet::Packet const& packet, PacketEntry const& entry) {
  const std::size_t had = is_alive(entry.verdict) ? nfs_.size() : std::size_t{entry.nf} + 1;
  for (std::size_t i = 0; i < had; ++i) {
    ++nfs_[i].instance->counters().in;
    if ((entry.alerts >> i & 1U) != 0) {
      nfs_[i].instance->outcome().alert(packet);
    }
  }
  if (is_alive(entry.verdict) && entry.output >= nf::kOwnOutputs) {
    nfs_.back().instance->outcome().leave_by(packet, static_cast<std::uint8_t>(entry.output - nf::kOwnOutputs));
  }
  if (static_cast<Verdict>(entry.verdict) == Verdict::kDrop) {
    nfs_[entry.nf].instance->outcome().drop(packet, entry.reason);
  } else if (static_cast<Verdict>(entry.verdict) == Verdict::kReply) {
    nfs_[entry.nf].instance->outcome().reply(packet);
  }
}

bool ProcessStage::send() {
  bool worked = false;
  const std::uint32_t depth = connection_->channel.shape().depth;
  for (std::uint32_t packets = 0; packets < kPacketsAtOnce && sent_.size() < depth && there_ < max_there_;) {
    memory::Unit* unit = in_->pop();
    if (unit == nullptr) {
      break;
    }
    sent_.push_back({unit, write(*unit), Clock::now()});
    there_ += unit->count;
    packets += std::max(unit->count, 1U);
    worked = true;
  }
  if (worked) {
    to_nf_->wake();
  }
  return worked;
}

std::uint32_t ProcessStage::write(memory::Unit const& unit) {
  const std::uint32_t first_slot = free_blocks_.back();
  free_blocks_.pop_back();
  const std::span<PacketEntry> entries = to_nf_->next();
  packet::MetaColumns const& meta = pool_->meta();
  for (std::uint32_t i = 0; i < unit.count; ++i) {
    const std::uint32_t slot = unit.slots()[i];
    // an alert of an NF before is nothing to those in the process, and so one that comes back is theirs
    const std::uint8_t verdict =
        is_alive(meta.verdict[slot]) ? static_cast<std::uint8_t>(Verdict::kPass) : meta.verdict[slot];
    entries[i] = {meta.layers[slot],
                  first_slot + i,
                  meta.offset[slot],
                  meta.length[slot],
                  meta.port[slot],
                  meta.ingress[slot],
                  meta.mtu[slot],
                  0,
                  verdict,
                  0,
                  nf::kPassOutput,
                  0,
                  0,
                  meta.index[slot],
                  meta.arrival_ns[slot]};
  }
  nf_process::FieldMask const& field_mask = connection_->field_mask;
  for (std::uint32_t i = 0; i < unit.count; ++i) {
    if (i + kPrefetchAhead < unit.count) {
      const std::uint32_t later = unit.slots()[i + kPrefetchAhead];
      __builtin_prefetch(pool_->slot(later) + meta.offset[later]);
    }
    if (const std::uint32_t slot = unit.slots()[i]; is_alive(meta.verdict[slot])) {
      std::memcpy(slot_of(first_slot + i) + meta.offset[slot], pool_->slot(slot) + meta.offset[slot],
                  field_mask.bytes_to_nf(meta.layers[slot], meta.length[slot]));
    }
  }
  to_nf_->push(unit.count);
  return first_slot;
}

std::byte* ProcessStage::slot_of(std::uint32_t slot) const {
  return connection_->frames.bytes().data() + std::size_t{slot} * packet::kSlotBytes;
}

/// The process is gone.
void ProcessStage::lose() {
  for (Sent const& sent : sent_) {
    drop(*sent.unit);
  }
  sent_.clear();
  there_ = 0;
  of_host_.reset();
  records_.reset();
  to_nf_.reset();
  connection_.reset();
}

bool ProcessStage::drop_waiting() {
  memory::Unit* unit = in_->pop();
  if (unit == nullptr) {
    return false;
  }
  drop(*unit);
  return true;
}

void ProcessStage::drop(memory::Unit& unit) {
  count(unit.count);
  nf::Instance& first = *nfs_.front().instance;
  first.drop_alive(pool_->batch(unit), nf::FrameworkReason::kProcessFailed);
  if (lines_ != nullptr) {
    take_lines(first, position_, pool_->batch(unit), lines_->of(unit));
  }
  out_->push(&unit);
}

/// Nothing came and nothing went.
Progress ProcessStage::find_end() {
  if (!sent_.empty()) {
    if (Clock::now() - sent_.front().at > limit_) {
      process_->fail(*connection_, "its process does not answer");
    }
    return Progress::kIdle;
  }
  if (!in_->drained()) {
    return Progress::kIdle;
  }
  if (keeps_process_) {
    out_->close();
    return Progress::kFinished;
  }
  if (connection_ != nullptr && !connection_->is_closed) {
    connection_->is_closed = true;
    to_nf_->close(process_->is_transferring_state() ? nf_process::kTransfersState : nf_process::kEnds);
    closed_at_ = Clock::now();
  }
  if (connection_ != nullptr) {
    const Clock::time_point now = Clock::now();
    if (now - std::max(closed_at_, connection_->wrote_at.load()) > limit_ || now - closed_at_ > kLongestEnd) {
      process_->fail(*connection_, "its process does not end");
    }
    return Progress::kIdle;  // until it is gone, and lose() has seen that
  }
  out_->close();
  return Progress::kFinished;
}

}  // namespace catena::runtime
