// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_stage.hpp"

#include "pipeline/recorder.hpp"
#include "pipeline/unit_group.hpp"

#include <utility>

namespace catena::runtime {
namespace {

/// A launch counts for one part in this many in the average that the next delay is made of.
constexpr int kLaunchTimeWeight = 8;

using Clock = std::chrono::steady_clock;

std::int64_t to_ns(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

DeviceStage::DeviceStage(nf::Instance& instance, std::uint32_t position, memory::PacketPool& pool,
                         memory::UnitQueue& in, memory::UnitQueue& out, DeviceStageOptions const& options)
    : PacketStage(instance.name()),
      instance_(&instance),
      position_(position),
      pool_(&pool),
      in_(&in),
      out_(&out),
      options_(options),
      ticker_(instance, options.live_clock) {}

Result<std::unique_ptr<DeviceStage>> DeviceStage::create(nf::Instance& instance, std::uint32_t position,
                                                         kernel::DeviceNf& device_nf, memory::PacketPool& pool,
                                                         memory::UnitQueue& in, memory::UnitQueue& out,
                                                         DeviceStageOptions const& options) {
  std::unique_ptr<DeviceStage> stage(new DeviceStage(instance, position, pool, in, out, options));
  DeviceUse& use = options.use != nullptr ? *options.use : stage->own_use_;
  CATENA_ASSIGN_OR_RETURN(stage->binding_, stage->attach(device_nf, options.only_on_device, use, options.bounds));
  return stage;
}

DeviceStage::~DeviceStage() {
  // a mover ends before the batches that it moves for: with all others
  if (binding_ != nullptr && filling_.batch != nullptr) {
    binding_->idle_.push_back(std::move(filling_));
  }
  for (InFlightBatch& batch_in_flight : in_flight_) {
    binding_->idle_.push_back(std::move(batch_in_flight));
  }
  delete next_binding_.load();
  delete reclaimable_.load();
}

DeviceUse& DeviceStage::use() const { return *binding_->use_; }

Status DeviceStage::device_status() const {
  const std::scoped_lock lock(binding_mutex_);
  return use().reason();
}

bool DeviceStage::abandoned() const { return abandoned_ || binding_->recovery_.gave_up(); }

void DeviceStage::deliver(InFlightBatch& batch_in_flight) {
  for (memory::Unit* unit : batch_in_flight.units) {
    if (options_.lines != nullptr) {
      take_lines(*instance_, position_, pool_->batch(*unit), options_.lines->of(*unit));
    }
    count(unit->count);
    unit->device_epoch = use().epoch();
  }
  // together: the next stage makes one launch of them
  out_->push(batch_in_flight.units);
  batch_in_flight.units.clear();
  batch_in_flight.group_ends.clear();
  batch_in_flight.slots.clear();
}

bool DeviceStage::is_traced(InFlightBatch const& batch_in_flight) const {
  return options_.trace != nullptr && options_.trace->wants(batch_in_flight.timeline.first_unit_ns);
}

/// Into the trace: a launch that has just been delivered.
void DeviceStage::log(InFlightBatch& batch_in_flight, std::int64_t ready_ns) {
  LaunchTimeline const& launch = batch_in_flight.timeline;
  const auto add = [&](const char* what, std::uint32_t track, std::int64_t begin_ns, std::int64_t end_ns) {
    options_.trace->add({what, track, launch.number, launch.packets, begin_ns, end_ns});
  };
  add("fill", 0, launch.first_unit_ns, launch.submit_begin_ns);
  add("submit", 0, launch.submit_begin_ns, launch.submit_end_ns);
  add("deliver", 0, ready_ns, to_ns(Clock::now()));
  const Result<std::optional<kernel::LaunchTimes>> times = batch_in_flight.batch->times();
  if (!times.ok()) {
    options_.trace->fail(times.status());
  } else if (*times) {
    const std::uint32_t track = launch.lane + 1;
    add("to device", track, (*times)->begin_ns, (*times)->moved_in_ns);
    add("kernel", track, (*times)->moved_in_ns, (*times)->computed_ns);
    add("to host", track, (*times)->computed_ns, (*times)->moved_back_ns);
  }
}

memory::Unit* DeviceStage::take_unit() { return next_ != nullptr ? std::exchange(next_, nullptr) : in_->pop(); }

bool DeviceStage::is_drained() const { return next_ == nullptr && in_->drained(); }

/// A launch whose packets are in staging goes to the device, whether those before it are done or not.
void DeviceStage::advance() {
  for (InFlightBatch& batch_in_flight : in_flight_) {
    if (batch_in_flight.state != InFlightBatch::State::kRunning || !batch_in_flight.batch->is_moving()) {
      continue;
    }
    if (const Status status = batch_in_flight.batch->advance(); !status.ok()) {
      batch_in_flight.state = InFlightBatch::State::kDraining;
      batch_in_flight.since = Clock::now();
      fail(status);
      return;
    }
  }
}

bool DeviceStage::collect() {
  advance();
  bool worked = false;
  while (!in_flight_.empty()) {
    InFlightBatch& oldest = in_flight_.front();
    if (oldest.state == InFlightBatch::State::kRunning) {
      const bool traced = is_traced(oldest);
      const std::int64_t checked_ns = traced ? to_ns(Clock::now()) : 0;
      const Result<bool> done = oldest.batch->poll();
      if (!done.ok()) {
        oldest.state = InFlightBatch::State::kDraining;
        oldest.since = Clock::now();
        fail(done.status());
        continue;
      }
      const Clock::duration took = Clock::now() - oldest.since;
      if (!*done) {
        if (took <= options_.limit || oldest.batch->is_moving()) {
          break;
        }
        oldest.state = InFlightBatch::State::kDraining;
        fail(binding_->recovery_.too_late());
        continue;
      }
      launch_time_ += (took - launch_time_) / kLaunchTimeWeight;
      deliver(oldest);
      if (traced) {
        log(oldest, checked_ns);
      }
    } else if (!settle(oldest)) {
      break;
    }
    binding_->idle_.push_back(std::move(oldest));
    in_flight_.pop_front();
    worked = true;
  }
  return worked;
}

/// Whether a launch that is not full has waited long enough while others run. Launches that start evenly spread over
/// the time that one takes keep the device as busy as it can be; to wait longer only adds to the latency.
bool DeviceStage::waited_enough() const {
  const auto now = Clock::now();
  return now - last_submit_ > launch_time_ / options_.in_flight || now - filling_.since > options_.max_batch_delay;
}

void DeviceStage::submit() {
  filling_.since = last_submit_ = Clock::now();
  const Status status = filling_.batch->submit();
  if (options_.trace != nullptr) {
    filling_.timeline.submit_begin_ns = to_ns(filling_.since);
    filling_.timeline.submit_end_ns = to_ns(Clock::now());
  }
  filling_.state = status.ok() ? InFlightBatch::State::kRunning : InFlightBatch::State::kDraining;
  in_flight_.push_back(std::move(filling_));
  filling_ = InFlightBatch{};
  if (!status.ok()) {
    fail(status);
  }
}

/// Gives the NF the units that were taken since the last time.
void DeviceStage::close_group() {
  const std::size_t first = filling_.group_ends.empty() ? 0 : filling_.group_ends.back();
  if (first < filling_.units.size()) {
    filling_.batch->add(batch_of(*pool_, std::span(filling_.units).subspan(first), filling_.slots));
    filling_.group_ends.push_back(filling_.units.size());
    filling_.open_packets = 0;
  }
}

bool DeviceStage::fill() {
  if (!use().allowed()) {
    notice();
    return false;
  }
  bool worked = false;
  while (device_status_.ok()) {
    if (host_fallback_ != nullptr && !filling_.batch) {
      return worked;
    }
    if (!filling_.batch) {
      if (binding_->idle_.empty() || is_moving_on() || (next_ == nullptr && in_->empty())) {
        return worked;
      }
      filling_ = std::move(binding_->idle_.back());
      binding_->idle_.pop_back();
      filling_.since = Clock::now();
      filling_.timeline.number = launches_++;
      filling_.timeline.first_unit_ns = to_ns(filling_.since);
      filling_.timeline.packets = 0;
    }
    while (host_fallback_ == nullptr) {
      memory::Unit* unit = take_unit();
      if (unit == nullptr) {
        break;
      }
      if (unit->host_fallback || is_stale(*unit)) {
        host_fallback_ = unit;
        break;
      }
      if (filling_.open_packets + unit->count > filling_.batch->room()) {
        next_ = unit;
        break;
      }
      filling_.units.push_back(unit);
      filling_.open_packets += unit->count;
      filling_.timeline.packets += unit->count;
      if (filling_.open_packets + pool_->unit_packets() > kPacketsAtOnce || options_.lines != nullptr) {
        close_group();
      }
      worked = true;
    }
    close_group();
    const bool full = next_ != nullptr || filling_.batch->room() == 0;
    const bool due =
        in_flight_.empty() || is_drained() || host_fallback_ != nullptr || is_moving_on() || waited_enough();
    if (filling_.units.empty() && host_fallback_ != nullptr) {
      binding_->idle_.push_back(std::move(filling_));
      filling_ = InFlightBatch{};
      return worked;
    }
    if (filling_.units.empty() || (!full && !due)) {
      return worked;
    }
    submit();
  }
  return worked;
}

Result<Progress> DeviceStage::poll() {
  instance_->board().answer(instance_->nf());
  if (next_binding_.load(std::memory_order_relaxed) != nullptr) {
    take_binding();
  }
  bool worked = collect();
  if (in_flight_.empty() && !filling_.batch) {  // under a steady load that seldom is so; then packets tell the time
    ticker_.poll();
  }
  if (may_take()) {
    worked = fill() || worked;
    worked = take_host_fallback() || worked;
  }
  if (in_flight_.empty() && !filling_.batch && host_fallback_ == nullptr && is_drained()) {
    out_->close();
    return Progress::kFinished;
  }
  return worked ? Progress::kWorked : Progress::kIdle;
}

}  // namespace catena::runtime
