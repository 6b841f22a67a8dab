// SPDX-License-Identifier: Apache-2.0
#include "pipeline/process_stage.hpp"

#include "base/ipc/ring.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace catena::runtime {

ProcessStage::ProcessStage(std::vector<nf::Instance*> const& instances, std::uint32_t position,
                           nf_process::NfProcess& process, memory::PacketPool& pool, memory::UnitQueue& in,
                           memory::UnitQueue& out, std::chrono::milliseconds limit, RecordLog* lines)
    : HostStage(instances.front()->name()),
      process_(&process),
      pool_(&pool),
      in_(&in),
      out_(&out),
      nfs_(instances),
      replies_(nfs_, position, pool, lines),
      deadlines_(limit * instances.size()) {}

Result<Progress> ProcessStage::poll() {
  for (std::size_t nf = 0; nf < nfs_.size(); ++nf) {
    nfs_[nf].board().answer(nfs_[nf].nf());
  }
  const bool may_take = this->may_take();
  if (!link_) {
    connect();
  }
  bool worked = false;
  if (link_) {
    worked = exchange(may_take);
  } else {
    ipc::clear_wake_ups(process_->notifier());
    worked = process_->is_down() && drop_waiting();
  }
  return worked ? Progress::kWorked : find_end();
}

void ProcessStage::connect() {
  if (auto connection = process_->take_connection(); connection != nullptr) {
    link_.emplace(std::move(connection), process_->notifier(), replies_.has_lines());
    nfs_.begin();
  }
}

void ProcessStage::continue_from(ProcessStage& before) {
  link_ = std::exchange(before.link_, std::nullopt);
  nfs_.continue_from(before.nfs_);
}

bool ProcessStage::exchange(bool may_take) {
  nfs_.exchange_parts(link_->connection().channel);
  const bool is_gone = link_->is_gone();  // then nothing more is written
  bool worked = receive();
  if (is_gone) {
    while (receive()) {  // what it gave back before it went
    }
    lose();
    return true;
  }
  worked = (may_take && send()) || worked;
  return worked;
}

bool ProcessStage::receive() {
  Status status = link_->records() != nullptr ? link_->records()->gather(units_.size()) : absl::OkStatus();
  bool worked = false;
  for (std::uint32_t packets = 0; status.ok() && packets < kPacketsAtOnce;) {
    const auto reply = link_->poll();
    if (reply.ok() && !reply->has_value()) {
      break;
    }
    status = reply.ok() ? take(**reply) : reply.status();
    if (status.ok()) {
      const SentUnit sent = units_.pop();
      packets += std::max(sent.unit->count, 1U);
      count(sent.unit->count);
      link_->release(sent.first_slot);
      out_->push(sent.unit);
      worked = true;
    }
  }
  if (!status.ok()) {
    process_->fail(link_->connection(), concat("NF process violated the protocol: ", std::string(status.message())));
  }
  if (worked) {
    nfs_.take_counts(link_->connection().channel);
  }
  return worked;
}

Status ProcessStage::take(std::span<const nf_process::PacketEntry> reply) {
  return units_.empty() ? absl::DataLossError("it returns a unit it does not have")
                        : replies_.apply(reply, units_.oldest(), units_.size(), *link_);
}

bool ProcessStage::send() {
  bool worked = false;
  for (std::uint32_t packets = 0; packets < kPacketsAtOnce && link_->has_room() && units_.has_room();) {
    memory::Unit* const unit = in_->pop();
    if (unit == nullptr) {
      break;
    }
    const std::uint32_t first_slot = link_->write(*unit, *pool_);
    units_.add({unit, first_slot, Clock::now()});
    packets += std::max(unit->count, 1U);
    worked = true;
  }
  if (worked) {
    link_->wake();
  }
  return worked;
}

/// The process is gone.
void ProcessStage::lose() {
  while (!units_.empty()) {
    drop(*units_.pop().unit);
  }
  link_.reset();
}

bool ProcessStage::drop_waiting() {
  memory::Unit* const unit = in_->pop();
  if (unit == nullptr) {
    return false;
  }
  drop(*unit);
  return true;
}

void ProcessStage::drop(memory::Unit& unit) {
  count(unit.count);
  replies_.drop(unit);
  out_->push(&unit);
}

/// Nothing came and nothing went.
Progress ProcessStage::find_end() {
  if (!units_.empty()) {
    if (deadlines_.is_unit_late(units_.oldest().at, Clock::now())) {
      process_->fail(link_->connection(), "its process does not answer");
    }
    return Progress::kIdle;
  }
  if (!in_->drained() || !(keeps_process_ || end_process())) {
    return Progress::kIdle;
  }
  out_->close();
  return Progress::kFinished;
}

/// After its last packet. True once it is gone, and lose() has seen that.
bool ProcessStage::end_process() {
  if (!link_) {
    return true;
  }
  if (!link_->is_closed()) {
    link_->close(process_->is_transferring_state() ? nf_process::kTransfersState : nf_process::kEnds);
    deadlines_.start_end(Clock::now());
  }
  if (deadlines_.is_end_late(link_->connection().wrote_at.load(), Clock::now())) {
    process_->fail(link_->connection(), "its process does not end");
  }
  return false;
}

}  // namespace catena::runtime
