// SPDX-License-Identifier: Apache-2.0
#include "pipeline/host_stages.hpp"

#include "pipeline/unit_group.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <utility>

namespace catena::runtime {
namespace {

/// That rx takes in one poll, at most, but for those of the last unit.
constexpr std::uint32_t kPacketsPerPoll = 4 * kPacketsAtOnce;

std::uint64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

/// Memory brings the headers of all packets side by side: an NF that comes to them one by one would wait for each, as a
/// pool is larger than the caches, and what a NIC or a device has written is in none of them.
void fetch_to_read(packet::Batch const& batch) {
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    __builtin_prefetch(batch[i].l3());
  }
}

/// The same with the right to write. An NF that first reads lines which another core has read, too, and then writes
/// them, waits for them twice.
[[gnu::target("prfchw")]] void fetch_to_write(packet::Batch const& batch) {
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    __builtin_prefetch(batch[i].l3(), 1);
  }
}

}  // namespace

void HostStage::worked(std::int64_t begin_ns, std::int64_t end_ns) {
  PacketStage::worked(begin_ns, end_ns);
  if (trace_ != nullptr && trace_->wants(begin_ns)) {
    const std::uint64_t packets = this->packets();
    trace_->add({"work", 0, polls_, static_cast<std::uint32_t>(packets - traced_packets_), begin_ns, end_ns});
    traced_packets_ = packets;
  }
  ++polls_;
}

RxStage::RxStage(io::Source& source, memory::PacketPool& pool, Splitter out, std::atomic<bool>& stop, RecordLog* lines)
    : HostStage("rx"),
      source_(&source),
      pool_(&pool),
      out_(std::move(out)),
      joiner_(pool, lines),
      stop_(&stop),
      lines_(lines) {}

Result<Progress> RxStage::poll() {
  // a worker that has other stages too comes back late: a source that gives full units is asked again at once
  bool worked = false;
  bool is_full = true;
  for (std::uint32_t packets = 0; is_full && packets < kPacketsPerPoll; packets += pool_->unit_packets()) {
    const Progress progress = receive(is_full);
    if (progress == Progress::kFinished) {
      return progress;
    }
    worked = worked || progress == Progress::kWorked;
  }
  out_.flush();
  return worked ? Progress::kWorked : Progress::kIdle;
}

Progress RxStage::receive(bool& is_full) {
  is_full = false;
  const bool receives_early = phase_ == Phase::kEarly;
  if (receives_early && !error_.ok()) {
    return Progress::kIdle;  // the chain ends once it runs
  }
  if (!error_.ok()) {
    *stop_ = true;  // other sources of the chain must not go on without this one's packets
  }
  const bool is_ending = stop_->load(std::memory_order_relaxed) || source_->finished();
  if (receives_early && is_ending) {
    return Progress::kIdle;  // the same
  }
  if (joiner_.is_due() || (is_ending && !joiner_.empty())) {
    out_.keep(joiner_.take());
  }
  if (!receives_early && !out_.push_kept()) {
    ++starved_polls_;
    find_exhausted();
    return Progress::kIdle;
  }
  if (is_ending) {
    if (std::exchange(phase_, Phase::kEnded) != Phase::kEnded) {
      source_->stop();
      end_gate();
      out_.close();
    }
    return Progress::kFinished;
  }
  if (!receives_early && !may_take()) {
    ++starved_polls_;
    return Progress::kIdle;
  }
  memory::Unit* unit = out_.take_unit(*pool_);
  if (unit == nullptr) {
    ++starved_polls_;
    find_exhausted();
    return Progress::kIdle;
  }
  bool starved = false;
  const std::uint64_t first_index = next_index_;
  unit->arrival_ns = 0;
  error_ = source_->receive(*pool_, *unit, next_index_, starved);
  starved_polls_ += starved ? 1 : 0;
  if (unit->count == 0) {
    out_.give_back(*pool_, unit);
    if (starved) {
      find_exhausted();
    }
    return Progress::kIdle;
  }
  unit->first_index = first_index;
  unit->end_index = next_index_;
  if (unit->arrival_ns == 0) {  // the source has no timetable
    unit->arrival_ns = now_ns();
    unit->last_arrival_ns = unit->arrival_ns;
  }
  std::uint64_t bytes = 0;
  for (const std::uint32_t slot : unit->used_slots()) {
    bytes += pool_->meta().length[slot];
  }
  bytes_ += bytes;
  if (lines_ != nullptr) {
    std::vector<nf::Arrival>& arrivals = lines_->of(*unit).arrivals;
    const packet::Batch batch = pool_->batch(*unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      arrivals.push_back(nf::arrival_of(batch[i]));
    }
  }
  count(unit->count);
  is_full = unit->count == pool_->unit_packets();
  if (phase_ == Phase::kBacklog && joiner_.empty() && out_.empty()) {
    phase_ = Phase::kWithChain;
  }
  if (edge_ != nullptr && phase_ == Phase::kWithChain && edge_->look()) {
    edge_->refuse(pool_->batch(*unit));
  }
  pass_on(unit);
  return Progress::kWorked;
}

/// Gives the unit to the next stage, or joins it with others.
void RxStage::pass_on(memory::Unit* unit) {
  const bool is_alone = joiner_.empty();
  if (!joiner_.join(*unit)) {
    if (!is_alone) {
      out_.keep(joiner_.take());
    }
    joiner_.hold(unit);
  }
  if (joiner_.is_due()) {
    if (phase_ == Phase::kEarly || !is_alone) {  // take_unit() provides for one push
      out_.keep(joiner_.take());
    } else {
      out_.push(joiner_.take());
    }
  }
}

/// Ends the source where packets would be waited for in vain.
void RxStage::find_exhausted() {
  if (error_.ok()) {
    error_ = pending_slots(*pool_, 1 + out_.units_wanted(), out_.slots_wanted());
  }
}

CpuStage::CpuStage(nf::Instance& instance, std::uint32_t position, memory::PacketPool& pool, memory::UnitQueue& in,
                   memory::UnitQueue& out, std::optional<io::LiveClock> live_clock, RecordLog* lines, Fetch fetch)
    : HostStage(instance.name()),
      instance_(&instance),
      position_(position),
      pool_(&pool),
      in_(&in),
      out_(&out),
      ticker_(instance, live_clock),
      lines_(lines),
      fetch_(fetch) {
  slots_.reserve(std::max(kPacketsAtOnce, pool.unit_packets()));
}

Result<Progress> CpuStage::poll() {
  ticker_.poll();
  instance_->board().answer(instance_->nf());
  std::uint32_t packets = 0;
  const bool may_take = this->may_take();
  while (may_take && (done_.empty() || packets + pool_->unit_packets() <= kPacketsAtOnce)) {
    memory::Unit* unit = in_->pop();
    if (unit == nullptr) {
      break;
    }
    packets += unit->count;
    done_.push_back(unit);
    if (lines_ != nullptr) {  // it must be known of which unit they are
      process(pool_->batch(*unit));
      take_lines(*instance_, position_, pool_->batch(*unit), lines_->of(*unit));
    }
  }
  if (!done_.empty()) {
    if (lines_ == nullptr) {
      slots_.clear();
      process(batch_of(*pool_, done_, slots_));
    }
    count(packets);
    out_->push(done_);
    done_.clear();
    return Progress::kWorked;
  }
  if (in_->drained()) {
    out_->close();
    return Progress::kFinished;
  }
  return Progress::kIdle;
}

void CpuStage::process(packet::Batch const& batch) {
  fetch_ == Fetch::kToWrite ? fetch_to_write(batch) : fetch_to_read(batch);
  instance_->process(batch);
}

ReshardStage::ReshardStage(memory::PacketPool& pool, Merger in, Splitter out, bool devices_change)
    : HostStage("reshard"), pool_(&pool), in_(std::move(in)), out_(std::move(out)), devices_change_(devices_change) {}

Result<Progress> ReshardStage::poll() {
  if (in_.drained()) {
    out_.close();
    return Progress::kFinished;
  }
  if (!out_.is_ready()) {
    CATENA_RETURN_IF_ERROR(pending_slots(*pool_, out_.units_wanted()));
    return Progress::kIdle;
  }
  memory::Unit* unit = in_.pop();
  if (unit == nullptr) {
    return Progress::kIdle;
  }
  count(unit->count);
  if (devices_change_) {
    unit->host_fallback = false;
    unit->device_epoch = 0;
  }
  out_.push(unit);
  out_.flush();
  return Progress::kWorked;
}

TxStage::TxStage(io::Sink& sink, memory::PacketPool& pool, Merger in, Recorder* recorder, RecordLog* lines)
    : HostStage("tx"), sink_(&sink), pool_(&pool), in_(std::move(in)), recorder_(recorder), lines_(lines) {}

Result<Progress> TxStage::poll() {
  bool worked = false;
  for (std::uint32_t packets = 0; packets < kPacketsAtOnce;) {
    memory::Unit* unit = in_.pop();
    if (unit == nullptr) {
      break;
    }
    worked = true;
    packets += unit->count;
    CATENA_RETURN_IF_ERROR(send(*unit));
  }
  if (worked || !in_.drained()) {
    return worked ? Progress::kWorked : Progress::kIdle;
  }
  CATENA_RETURN_IF_ERROR(sink_->finish());
  return Progress::kFinished;
}

Status TxStage::send(memory::Unit& unit) {
  std::uint64_t dropped = 0;
  packet::MetaColumns const& meta = pool_->meta();
  for (const std::uint32_t slot : unit.used_slots()) {
    dropped += meta.verdict[slot] == static_cast<std::uint8_t>(packet::Verdict::kDrop) ? 1 : 0;
  }
  Status recorded = recorder_ != nullptr ? recorder_->write(lines_->of(unit)) : absl::OkStatus();
  const std::uint32_t packets = unit.count;
  const std::uint64_t first_ns = unit.arrival_ns;
  const std::uint64_t last_ns = unit.last_arrival_ns;
  // a quarantined unit has nothing to send
  const Status sent = unit.quarantined ? absl::OkStatus() : sink_->send(*pool_, unit);
  const std::uint64_t now = now_ns();
  latency_.add_between(now - last_ns, now - first_ns, packets - dropped);
  count(packets - dropped);
  if (unit.quarantined) {
    pool_->quarantine(unit);
  } else {
    pool_->release_unit(&unit);
  }
  CATENA_RETURN_IF_ERROR(sent);
  return recorded;
}

}  // namespace catena::runtime
