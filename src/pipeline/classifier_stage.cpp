// SPDX-License-Identifier: Apache-2.0
#include "pipeline/classifier_stage.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace catena::runtime {
namespace {

/// Fields read by the table may have left the caches while an NF worked on later packets.
constexpr std::uint32_t kRowsAhead = 8;

/// The frame and what is known of it, from slot to slot.
void copy_packet(memory::PacketPool const& pool, std::uint32_t from, std::uint32_t to) {
  packet::MetaColumns const& meta = pool.meta();
  std::memcpy(pool.slot(to) + meta.offset[from], pool.slot(from) + meta.offset[from], meta.length[from]);
  meta.offset[to] = meta.offset[from];
  meta.length[to] = meta.length[from];
  meta.layers[to] = meta.layers[from];
  meta.verdict[to] = meta.verdict[from];
  meta.port[to] = meta.port[from];
  meta.index[to] = meta.index[from];
  meta.arrival_ns[to] = meta.arrival_ns[from];
  meta.rewritten[to] = 0;
  meta.ingress[to] = meta.ingress[from];
  meta.mtu[to] = meta.mtu[from];
  meta.output[to] = meta.output[from];
}

}  // namespace

ClassifierStage::ClassifierStage(std::string const& from, chain::NextNodeTable const& table, memory::PacketPool& pool,
                                 memory::UnitQueue& in, std::vector<memory::UnitQueue*> out, memory::UnitQueue& ended,
                                 BufferReservation& reserve, RecordLog* lines)
    : HostStage(concat(from, " classifier")),
      from_(from),
      table_(&table),
      pool_(&pool),
      in_(&in),
      out_(std::move(out)),
      ended_(static_cast<std::size_t>(std::ranges::find(out_, &ended) - out_.begin())),
      reserve_(&reserve),
      lines_(lines),
      sent_(out_.size()),
      mirrored_(out_.size()) {
  if (ended_ == out_.size()) {
    out_.push_back(&ended);
  }
  for (std::uint64_t left = table.mirrors(); left != 0; left &= left - 1) {
    mirrored_branches_.push_back(static_cast<std::size_t>(std::countr_zero(left)));
  }
  parts_.resize(out_.size() + mirrored_branches_.size());
  const std::size_t copies = mirrored_branches_.size() * pool.unit_packets();
  spare_slots_.reserve(copies);
  number_ = reserve.add(static_cast<std::uint32_t>(parts_.size()), static_cast<std::uint32_t>(copies));
}

Result<Progress> ClassifierStage::poll() {
  std::uint32_t packets = 0;
  while (packets < kPacketsAtOnce) {
    if (!is_ready()) {
      CATENA_RETURN_IF_ERROR(
          pending_slots(*pool_, reserve_->wanted_from(number_), reserve_->slots_wanted_from(number_)));
      break;
    }
    memory::Unit* const unit = in_->pop();
    if (unit == nullptr) {
      break;
    }
    packets += unit->count;
    classify(unit);
  }
  if (packets > 0) {
    count(packets);
    return Progress::kWorked;
  }
  if (in_->drained()) {
    close();
    return Progress::kFinished;
  }
  return Progress::kIdle;
}

/// Whether there are empty parts, and slots, for whatever the next unit needs. Where there are not, units are in flight
/// that will come back.
bool ClassifierStage::is_ready() {
  const bool has_parts = std::ranges::find(parts_, nullptr) == parts_.end() || reserve_->take(number_, parts_);
  return has_parts && (spare_slots_.size() == spare_slots_.capacity() || reserve_->take_slots(number_, spare_slots_));
}

void ClassifierStage::classify(memory::Unit* unit) {
  if (unit->quarantined) {  // there is no packet in it that anybody may look at
    out_[ended_]->push(unit);
    return;
  }
  const std::size_t branch = decide(pool_->batch(*unit));
  if (branch < out_.size() && !has_copies_) {
    out_[branch]->push(unit);
  } else {
    divide(unit);
  }
}

/// Decides all packets. Returns their common branch, else the number of branches.
std::size_t ClassifierStage::decide(packet::Batch const& packets) {
  branches_.resize(packets.size());
  mirrors_.assign(packets.size(), 0);
  has_copies_ = false;
  bool is_one_branch = true;
  for (std::uint32_t i = 0; i < packets.size(); ++i) {
    if (i + kRowsAhead < packets.size()) {
      __builtin_prefetch(packets[i + kRowsAhead].l3());
    }
    const packet::Packet packet = packets[i];
    std::size_t branch = ended_;
    if (packet::ended(static_cast<std::uint8_t>(packet.verdict())) == 0) {
      const chain::NextNodeTable::Decision decision = table_->decide(packet);
      mirrors_[i] = decision.mirrors;
      has_copies_ = has_copies_ || decision.mirrors != 0;
      branch = decision.to;
      if (branch < sent_.size()) {
        ++sent_[branch];
      }
    }
    // a packet's copies are made before it ends: its verdict is set where the unit is divided
    branches_[i] = static_cast<std::uint8_t>(branch);
    is_one_branch = is_one_branch && branch == branches_[0];
  }
  return is_one_branch && drops_of(branches_[0]) == nullptr ? branches_[0] : out_.size();
}

/// The count of packets that a decision drops; null where it sends them on.
Counter* ClassifierStage::drops_of(std::uint8_t decision) {
  switch (decision) {
    case chain::NextNodeTable::kDropped:
      return &dropped_;
    case chain::NextNodeTable::kUnmatched:
      return &unmatched_;
    case chain::NextNodeTable::kMalformed:
      return &malformed_;
    default:
      return nullptr;
  }
}

memory::Unit& ClassifierStage::part(std::size_t number, memory::Unit const& unit) {
  memory::Unit& part = *parts_[number];
  if (part.count == 0) {
    part.first_index = unit.first_index;
    part.end_index = unit.end_index;
    part.arrival_ns = unit.arrival_ns;
    part.last_arrival_ns = unit.last_arrival_ns;
    const bool is_of_copies = number >= out_.size();
    part.host_fallback = !is_of_copies && unit.host_fallback;
    part.device_epoch = is_of_copies ? 0 : unit.device_epoch;
  }
  return part;
}

void ClassifierStage::divide(memory::Unit* unit) {
  const packet::Batch packets = pool_->batch(*unit);
  for (std::uint32_t i = 0; i < packets.size(); ++i) {
    const packet::Packet packet = packets[i];
    for (std::uint64_t left = mirrors_[i]; left != 0; left &= left - 1) {
      const auto target = static_cast<std::size_t>(std::countr_zero(left));
      const auto copies_at = std::ranges::find(mirrored_branches_, target) - mirrored_branches_.begin();
      memory::Unit& copies = part(out_.size() + static_cast<std::size_t>(copies_at), *unit);
      ++mirrored_[target];
      const std::uint32_t slot = spare_slots_[spare_slots_.size() - ++used_slots_];
      copy_packet(*pool_, packet.slot(), slot);
      copies.slots()[copies.count++] = slot;
    }
    std::size_t branch = branches_[i];
    if (Counter* const drops = drops_of(branches_[i])) {
      ++*drops;
      packet.set_verdict(packet::Verdict::kDrop);
      branch = ended_;
    }
    memory::Unit& own = part(branch, *unit);
    own.slots()[own.count++] = packet.slot();
  }
  if (lines_ != nullptr) {
    divide_lines(*unit);
  }
  std::uint32_t used = 0;
  for (memory::Unit const* const part : parts_) {
    used += part->count > 0 ? 1 : 0;
  }
  spare_slots_.resize(spare_slots_.size() - used_slots_);
  // before anything may come back: whoever takes it has to know what is missing
  reserve_->used(number_, used, std::exchange(used_slots_, 0));
  pool_->release_unit(unit);
  for (std::size_t number = 0; number < parts_.size(); ++number) {
    if (parts_[number]->count > 0) {
      const std::size_t branch = number < out_.size() ? number : mirrored_branches_[number - out_.size()];
      out_[branch]->push(std::exchange(parts_[number], nullptr));
    }
  }
}

void ClassifierStage::divide_lines(memory::Unit const& unit) {
  std::vector<PartLines> parts;
  for (std::size_t number = 0; number < parts_.size(); ++number) {
    if (memory::Unit const& part = *parts_[number]; part.count > 0) {
      parts.push_back({pool_->batch(part), &lines_->of(part), number >= out_.size()});
    }
  }
  runtime::divide_lines(lines_->of(unit), parts);
}

void ClassifierStage::close() {
  for (memory::Unit*& part : parts_) {
    if (part != nullptr) {
      pool_->release_unit(std::exchange(part, nullptr));
    }
  }
  pool_->release_slots(spare_slots_);
  spare_slots_.clear();
  for (memory::UnitQueue* const queue : out_) {
    queue->close();
  }
}

}  // namespace catena::runtime
