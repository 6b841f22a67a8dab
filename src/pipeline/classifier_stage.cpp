// SPDX-License-Identifier: Apache-2.0
#include "pipeline/classifier_stage.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

namespace catena::runtime {
namespace {

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

/// Positions of the receivers of copies.
std::vector<std::size_t> mirrored_branches_of(chain::NextNodeTable const& table) {
  std::vector<std::size_t> branches;
  for (std::uint64_t left = table.mirrors(); left != 0; left &= left - 1) {
    branches.push_back(static_cast<std::size_t>(std::countr_zero(left)));
  }
  return branches;
}

/// With tx, which is a branch also if it is no target.
std::vector<memory::UnitQueue*> with_ended(std::vector<memory::UnitQueue*> out, memory::UnitQueue& ended) {
  if (std::ranges::find(out, &ended) == out.end()) {
    out.push_back(&ended);
  }
  return out;
}

}  // namespace

ClassifierStage::ClassifierStage(std::string const& from, chain::NextNodeTable const& table, memory::PacketPool& pool,
                                 memory::UnitQueue& in, std::vector<memory::UnitQueue*> out, memory::UnitQueue& ended,
                                 BufferReservation& reserve, RecordLog* lines)
    : HostStage(concat(from, " classifier")),
      from_(from),
      pool_(&pool),
      in_(&in),
      out_(with_ended(std::move(out), ended)),
      ended_(static_cast<std::size_t>(std::ranges::find(out_, &ended) - out_.begin())),
      mirrored_branches_(mirrored_branches_of(table)),
      lines_(lines),
      classifier_(table, table.targets().size(), ended_),
      buffers_(pool, reserve, out_.size(), mirrored_branches_.size()) {}

Result<Progress> ClassifierStage::poll() {
  std::uint32_t packets = 0;
  while (packets < kPacketsAtOnce) {
    if (!buffers_.is_ready()) {
      CATENA_RETURN_IF_ERROR(buffers_.pending());
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

void ClassifierStage::classify(memory::Unit* unit) {
  if (unit->quarantined) {  // there is no packet in it that anybody may look at
    out_[ended_]->push(unit);
    return;
  }
  if (const std::optional<std::size_t> branch = classifier_.decide(pool_->batch(*unit))) {
    out_[*branch]->push(unit);
  } else {
    divide(unit);
  }
}

void ClassifierStage::divide(memory::Unit* unit) {
  const packet::Batch packets = pool_->batch(*unit);
  for (std::uint32_t i = 0; i < packets.size(); ++i) {
    const packet::Packet packet = packets[i];
    for (std::uint64_t left = classifier_.mirrors(i); left != 0; left &= left - 1) {
      const auto target = static_cast<std::size_t>(std::countr_zero(left));
      const auto copies_at = std::ranges::find(mirrored_branches_, target) - mirrored_branches_.begin();
      memory::Unit& copies = buffers_.part(out_.size() + static_cast<std::size_t>(copies_at), *unit);
      classifier_.count_copy(target);
      const std::uint32_t slot = buffers_.take_slot();
      copy_packet(*pool_, packet.slot(), slot);
      copies.slots()[copies.count++] = slot;
    }
    memory::Unit& own = buffers_.part(classifier_.conclude(i, packet), *unit);
    own.slots()[own.count++] = packet.slot();
  }
  if (lines_ != nullptr) {
    divide_lines(*unit);
  }
  buffers_.report_used();
  pool_->release_unit(unit);
  for (std::size_t number = 0; number < buffers_.parts().size(); ++number) {
    if (memory::Unit* const part = buffers_.take(number)) {
      out_[buffers_.has_copies(number) ? mirrored_branches_[number - out_.size()] : number]->push(part);
    }
  }
}

void ClassifierStage::divide_lines(memory::Unit const& unit) {
  std::vector<PartLines> parts;
  for (std::size_t number = 0; number < buffers_.parts().size(); ++number) {
    if (memory::Unit const& part = *buffers_.parts()[number]; part.count > 0) {
      parts.push_back({pool_->batch(part), &lines_->of(part), buffers_.has_copies(number)});
    }
  }
  runtime::divide_lines(lines_->of(unit), parts);
}

void ClassifierStage::close() {
  buffers_.close();
  for (memory::UnitQueue* const queue : out_) {
    queue->close();
  }
}

}  // namespace catena::runtime
