// SPDX-License-Identifier: Apache-2.0
#include "runtime/process_stage.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <array>
#include <cstring>
#include <utility>

namespace catena::runtime {
namespace {

using nf_process::PacketEntry;
using packet::Verdict;

/// Beside the limit of a device that does not answer, for what an NF does on the CPU meanwhile.
constexpr std::chrono::seconds kGrace{5};

bool is_alive(std::uint8_t verdict) { return packet::ended(verdict) == 0; }

/// What an NF may make of a packet.
bool is_sound(PacketEntry const& entry) {
  return entry.verdict <= static_cast<std::uint8_t>(Verdict::kReply) && entry.length > 0 &&
         std::uint32_t{entry.offset} + entry.length <= packet::kSlotBytes &&
         (entry.mtu == 0 || entry.mtu >= packet::kMinMtu);
}

}  // namespace

ProcessStage::ProcessStage(nf::Instance& instance, nf_process::NfProcess& process, memory::PacketPool& pool,
                           memory::UnitQueue& in, memory::UnitQueue& out, std::chrono::milliseconds limit)
    : HostStage(instance.name()),
      instance_(&instance),
      process_(&process),
      pool_(&pool),
      in_(&in),
      out_(&out),
      limit_(limit + kGrace) {}

Result<Progress> ProcessStage::poll() {
  instance_->board().answer(instance_->nf());
  bool worked = false;
  if (link_ == nullptr) {
    if (auto link = process_->take_link(); link != nullptr) {
      begin(std::move(link));
    }
  }
  if (link_ != nullptr) {
    const bool is_gone = link_->is_gone.load(std::memory_order_acquire);  // then nothing more is written
    worked = receive();
    if (is_gone) {
      while (receive()) {  // what it gave back before it went
      }
      lose();
      worked = true;
    } else {
      worked = send() || worked;
    }
  } else {
    nf_process::silence(process_->bell());
    worked = process_->is_down() && drop_waiting();
  }
  return worked ? Progress::kWorked : look_for_end();
}

void ProcessStage::begin(std::shared_ptr<nf_process::Link> link) {
  link_ = std::move(link);
  to_nf_ = link_->channel.writer_to_nf(process_->bell());
  of_host_ = link_->channel.reader_of_host(process_->bell());
  messages_ = 0;
  seen_.clear();
}

bool ProcessStage::receive() {
  bool worked = false;
  for (std::uint32_t packets = 0; packets < kPacketsAtOnce;) {
    const auto message = of_host_->poll();
    Status status = message.status();
    if (status.ok() && !message->has_value()) {
      break;
    }
    if (status.ok()) {
      status =
          sent_.empty() ? absl::DataLossError("it gives back what it does not have") : take(sent_.front(), **message);
    }
    if (!status.ok()) {
      process_->fail(*link_, concat("its process lies: ", std::string(status.message())));
      break;
    }
    of_host_->take();
    packets += std::max(sent_.front().unit->count, 1U);
    count(sent_.front().unit->count);
    out_->push(sent_.front().unit);
    sent_.pop_front();
    worked = true;
  }
  if (worked) {
    take_counts();
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
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if (entries_[i].slot != sent.first_slot + i) {
      return absl::DataLossError("a packet is not in its slot");
    }
    if (is_alive(batch.meta().verdict[batch.slots()[i]]) && !is_sound(entries_[i])) {
      return absl::DataLossError("a packet has bounds or a verdict that cannot be");
    }
  }
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if (is_alive(batch.meta().verdict[batch.slots()[i]])) {
      decide(batch[i], entries_[i]);
    }
  }
  return absl::OkStatus();
}

void ProcessStage::decide(packet::Packet const& packet, PacketEntry const& entry) {
  ++instance_->counters().in;
  // nobody else can change it then: what is parsed is what later NFs read
  std::memcpy(pool_->slot(packet.slot()) + entry.offset, slot_of(entry.slot) + entry.offset, entry.length);
  packet.set_extent(entry.offset, entry.length);
  packet.set_port(entry.port);
  packet.set_mtu(entry.mtu);
  packet.reparse();
  switch (static_cast<Verdict>(entry.verdict)) {
    case Verdict::kPass:
      break;
    case Verdict::kAlert:
      instance_->outcome().alert(packet);
      break;
    case Verdict::kDrop:
      instance_->outcome().drop(packet, entry.reason);
      break;
    case Verdict::kReply:
      instance_->outcome().reply(packet);
      break;
  }
}

bool ProcessStage::send() {
  bool worked = false;
  const std::uint32_t depth = link_->channel.shape().depth;
  for (std::uint32_t packets = 0; packets < kPacketsAtOnce && sent_.size() < depth;) {
    memory::Unit* unit = in_->pop();
    if (unit == nullptr) {
      break;
    }
    sent_.push_back({unit, write(*unit), Clock::now()});
    packets += std::max(unit->count, 1U);
    worked = true;
  }
  if (worked) {
    to_nf_->wake();
  }
  return worked;
}

std::uint32_t ProcessStage::write(memory::Unit const& unit) {
  const std::uint32_t first_slot = link_->channel.shape().first_slot(messages_++);
  const std::span<PacketEntry> entries = to_nf_->next();
  packet::MetaColumns const& meta = pool_->meta();
  for (std::uint32_t i = 0; i < unit.count; ++i) {
    const std::uint32_t slot = unit.slots()[i];
    // an alert of an NF before is nothing to this one, and so one that comes back is its own
    const std::uint8_t verdict =
        is_alive(meta.verdict[slot]) ? static_cast<std::uint8_t>(Verdict::kPass) : meta.verdict[slot];
    entries[i] = {
        first_slot + i, meta.offset[slot], meta.length[slot],    meta.port[slot], meta.ingress[slot], meta.mtu[slot], 0,
        verdict,        meta.index[slot],  meta.arrival_ns[slot]};
  }
  for (std::uint32_t i = 0; i < unit.count; ++i) {
    if (const std::uint32_t slot = unit.slots()[i]; is_alive(meta.verdict[slot])) {
      std::memcpy(slot_of(first_slot + i) + meta.offset[slot], pool_->slot(slot) + meta.offset[slot],
                  meta.length[slot]);
    }
  }
  to_nf_->push(unit.count);
  return first_slot;
}

std::byte* ProcessStage::slot_of(std::uint32_t slot) const {
  return link_->frames.bytes().data() + std::size_t{slot} * packet::kSlotBytes;
}

/// Numbers that the process claims; they only go up.
void ProcessStage::take_counts() {
  nf_process::SharedCounts const& of = link_->channel.counts();
  nf::Counters& counters = instance_->counters();
  const std::array<std::pair<std::atomic<std::uint64_t> const*, Counter*>, 8> all{{
      {&of.processed, &counters.processed},
      {&of.unsupported, &counters.unsupported},
      {&of.link_local, &counters.link_local},
      {&of.kernel_faults, &counters.kernel_faults},
      {&of.device_packets, &counters.device_packets},
      {&of.transfer_packets, &counters.transfers.packets},
      {&of.bytes_to_device, &counters.transfers.bytes_to_device},
      {&of.bytes_to_host, &counters.transfers.bytes_to_host},
  }};
  seen_.resize(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint64_t now = all[i].first->load(std::memory_order_relaxed);
    if (now > seen_[i]) {
      *all[i].second += now - seen_[i];
      seen_[i] = now;
    }
  }
}

/// The process is gone.
void ProcessStage::lose() {
  for (Sent const& sent : sent_) {
    drop(*sent.unit);
  }
  sent_.clear();
  of_host_.reset();
  to_nf_.reset();
  link_.reset();
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
  instance_->drop_alive(pool_->batch(unit), nf::FrameworkReason::kProcessFailed);
  out_->push(&unit);
}

/// Nothing came and nothing went.
Progress ProcessStage::look_for_end() {
  if (!sent_.empty()) {
    if (Clock::now() - sent_.front().at > limit_) {
      process_->fail(*link_, "its process does not answer");
    }
    return Progress::kIdle;
  }
  if (!in_->drained()) {
    return Progress::kIdle;
  }
  if (link_ != nullptr && !link_->is_closed) {
    link_->is_closed = true;
    to_nf_->close();
    closed_at_ = Clock::now();
  }
  if (link_ != nullptr) {
    if (Clock::now() - closed_at_ > limit_) {
      process_->fail(*link_, "its process does not end");
    }
    return Progress::kIdle;  // until it is gone, and lose() has seen that
  }
  out_->close();
  return Progress::kFinished;
}

}  // namespace catena::runtime
