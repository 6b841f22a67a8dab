// SPDX-License-Identifier: Apache-2.0
#include "runtime/stage.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

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

DeviceStage::DeviceStage(nf::Instance& instance, std::uint32_t position, kernel::DeviceNf& device_nf,
                         memory::PacketPool& pool, memory::UnitQueue& in, memory::UnitQueue& out,
                         DeviceStageOptions const& options)
    : Stage(instance.name()),
      instance_(&instance),
      position_(position),
      device_nf_(&device_nf),
      pool_(&pool),
      in_(&in),
      out_(&out),
      options_(options),
      ticker_(instance.nf(), options.live_clock),
      // a device that does not answer is another matter, and has more time
      mover_(options.make_engine ? options.make_engine() : copy::make_cpu_engine(),
             {options.in_flight, options.units_per_launch * pool.unit_packets()}, options.limit / 2),
      use_(options.use != nullptr ? options.use : &own_use_) {}

Result<std::unique_ptr<DeviceStage>> DeviceStage::create(nf::Instance& instance, std::uint32_t position,
                                                         kernel::DeviceNf& device_nf, memory::PacketPool& pool,
                                                         memory::UnitQueue& in, memory::UnitQueue& out,
                                                         DeviceStageOptions const& options) {
  if (options.only_on_device != 0 && device_nf.shared() == nullptr) {
    return absl::InvalidArgumentError(
        concat("NF ", instance.name(), ": a plan that leaves fields on the device alone needs a shared buffer"));
  }
  std::unique_ptr<DeviceStage> stage(new DeviceStage(instance, position, device_nf, pool, in, out, options));
  for (std::uint32_t i = 0; i < options.in_flight; ++i) {
    InFlightBatch batch_in_flight;
    CATENA_ASSIGN_OR_RETURN(
        batch_in_flight.batch,
        nf::DeviceBatch::create(instance, device_nf, options.units_per_launch * pool.unit_packets(), stage->mover_));
    if (options.trace != nullptr) {
      CATENA_RETURN_IF_ERROR(batch_in_flight.batch->start_trace());
      batch_in_flight.timeline.lane = options.in_flight - 1 - i;  // the last one made is the first one used
    }
    stage->idle_.push_back(std::move(batch_in_flight));
  }
  return stage;
}

DeviceStage::~DeviceStage() {
  if (!use_->answers()) {
    device_nf_->device().abandon(use_->reason());
  }
}

void DeviceStage::deliver(InFlightBatch& batch_in_flight) {
  for (memory::Unit* unit : batch_in_flight.units) {
    if (options_.lines != nullptr) {
      take_lines(*instance_, position_, *unit, options_.lines->of(*unit));
    }
    count(unit->count);
  }
  // together: the next stage makes one launch of them
  out_->push(batch_in_flight.units);
  batch_in_flight.units.clear();
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

/// Takes the device out of use for the whole chain.
void DeviceStage::fail(Status const& status) {
  if (absl::IsDeadlineExceeded(status)) {
    abandoned_ = true;
    use_->give_up();
  }
  if (use_->stop(Status(status.code(), concat("NF ", instance_->name(), ": ", std::string(status.message()))))) {
    spdlog::error(
        "NF {}: device {} is out of use for this chain: {}. From now on the CPU implementations of its NFs decide. "
        "Packets whose newest bytes are on the device are brought back; those that it does not give back, and those "
        "that "
        "it may have half changed, are dropped (device_failed).",
        instance_->name(), device_nf_->device().info().name, status.ToString());
  }
  notice();
}

/// Keeps why the device is out of use, and hands on what waited for a launch.
void DeviceStage::notice() {
  if (device_status_.ok()) {
    device_status_ = use_->reason();
  }
  if (filling_.batch) {
    filling_.state = InFlightBatch::State::kSettling;
    in_flight_.push_back(std::move(filling_));
    filling_ = InFlightBatch{};
  }
}

Status DeviceStage::too_late() const {
  return absl::DeadlineExceededError(
      concat("stage ", name(), " waited more than ",
             std::chrono::duration_cast<std::chrono::milliseconds>(options_.limit).count(), " ms for device ",
             device_nf_->device().info().name));
}

memory::Unit* DeviceStage::take_unit() { return next_ != nullptr ? std::exchange(next_, nullptr) : in_->pop(); }

bool DeviceStage::is_drained() const { return next_ == nullptr && in_->drained(); }

/// Brings to the host what it does not have of the unit.
DeviceStage::Rescue DeviceStage::rescue(memory::Unit const& unit) {
  if (options_.only_on_device == 0) {
    return Rescue::kSaved;
  }
  const auto lost = [this](Status const& why) {
    is_reading_ = false;
    if (!std::exchange(warned_, true)) {
      spdlog::warn("NF {}: packets that only device {} has cannot be brought back: {}", instance_->name(),
                   device_nf_->device().info().name, why.ToString());
    }
    if (absl::IsDeadlineExceeded(why)) {
      abandoned_ = true;
      use_->give_up();
    }
    return Rescue::kLost;
  };
  if (!is_reading_) {
    if (!use_->answers() || !device_nf_->device().failed().ok()) {
      return Rescue::kLost;
    }
    if (!read_back_) {
      auto made = copy::ReadBack::create(device_nf_->device(), *device_nf_->shared(), options_.only_on_device,
                                         pool_->unit_packets());
      if (!made.ok()) {
        return lost(made.status());
      }
      read_back_ = *std::move(made);
    }
    if (const Status started = read_back_->start(pool_->batch(unit)); !started.ok()) {
      return lost(started);
    }
    is_reading_ = true;
    reading_since_ = Clock::now();
  }
  const Result<bool> done = read_back_->poll();
  if (!done.ok()) {
    return lost(done.status());
  }
  if (!*done) {
    return Clock::now() - reading_since_ > options_.limit ? lost(too_late()) : Rescue::kWaiting;
  }
  is_reading_ = false;
  read_back_->apply();
  return Rescue::kSaved;
}

/// The next unit that the CPU implementation is to decide though a device is there, or was. True if there was one.
bool DeviceStage::take_host_fallback() {
  if (host_fallback_ == nullptr && !use_->allowed()) {
    host_fallback_ = take_unit();
  }
  if (host_fallback_ == nullptr || !in_flight_.empty() || filling_.batch) {
    return false;
  }
  const Rescue rescued = host_fallback_->host_fallback ? Rescue::kSaved : rescue(*host_fallback_);
  if (rescued == Rescue::kWaiting) {
    return false;
  }
  InFlightBatch single;
  single.units.push_back(std::exchange(host_fallback_, nullptr));
  memory::Unit& unit = *single.units.front();
  if (rescued == Rescue::kSaved) {
    instance_->process(pool_->batch(unit));
  } else {
    instance_->drop_alive(pool_->batch(unit), nf::FrameworkReason::kDeviceFailed);
  }
  unit.host_fallback = true;
  deliver(single);
  return true;
}

/// Waits until nothing of a batch that failed runs any more. False: not known yet.
bool DeviceStage::drain(InFlightBatch& batch_in_flight) {
  if (batch_in_flight.state != InFlightBatch::State::kDraining) {
    return true;
  }
  const Result<bool> drained = batch_in_flight.batch->drained();
  if (drained.ok() && !*drained && use_->answers()) {
    if (Clock::now() - batch_in_flight.since <= options_.limit) {
      return false;
    }
    fail(too_late());
  }
  batch_in_flight.may_still_run = !drained.ok() || !*drained;
  batch_in_flight.state = InFlightBatch::State::kSettling;
  return true;
}

/// Ends a batch that the device has not: by the CPU implementation where the host has its packets, or can have them.
/// False: not yet.
bool DeviceStage::settle(InFlightBatch& batch_in_flight) {
  if (!drain(batch_in_flight)) {
    return false;
  }
  nf::DeviceBatch& batch = *batch_in_flight.batch;
  const bool quarantined = batch_in_flight.may_still_run && batch.may_write_packets();
  const bool is_lost = quarantined || batch.may_change_packets() || batch.may_change_on_device(options_.only_on_device);
  for (; batch_in_flight.settled < batch_in_flight.units.size(); ++batch_in_flight.settled) {
    memory::Unit& unit = *batch_in_flight.units[batch_in_flight.settled];
    const Rescue rescued = is_lost ? Rescue::kLost : rescue(unit);
    if (rescued == Rescue::kWaiting) {
      return false;
    }
    if (rescued == Rescue::kSaved) {
      batch.finish_on_cpu(batch_in_flight.settled);
    } else {
      batch.drop(batch_in_flight.settled, quarantined);
    }
    unit.host_fallback = true;
    unit.quarantined = quarantined;
  }
  batch.clear();
  batch_in_flight.settled = 0;
  deliver(batch_in_flight);
  return true;
}

bool DeviceStage::collect() {
  bool worked = false;
  while (!in_flight_.empty()) {
    InFlightBatch& oldest = in_flight_.front();
    if (oldest.state == InFlightBatch::State::kRunning) {
      const bool traced = is_traced(oldest);
      const std::int64_t looked_ns = traced ? to_ns(Clock::now()) : 0;
      const Result<bool> done = oldest.batch->poll();
      if (!done.ok()) {
        oldest.state = InFlightBatch::State::kDraining;
        oldest.since = Clock::now();
        fail(done.status());
        continue;
      }
      const Clock::duration took = Clock::now() - oldest.since;
      if (!*done) {
        if (took <= options_.limit) {
          break;
        }
        oldest.state = InFlightBatch::State::kDraining;
        fail(too_late());
        continue;
      }
      launch_time_ += (took - launch_time_) / kLaunchTimeWeight;
      deliver(oldest);
      if (traced) {
        log(oldest, looked_ns);
      }
    } else if (!settle(oldest)) {
      break;
    }
    idle_.push_back(std::move(oldest));
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

bool DeviceStage::fill() {
  if (!use_->allowed()) {
    notice();
    return false;
  }
  bool worked = false;
  while (device_status_.ok()) {
    if (host_fallback_ != nullptr && !filling_.batch) {
      return worked;
    }
    if (!filling_.batch) {
      if (idle_.empty() || (next_ == nullptr && in_->empty())) {
        return worked;
      }
      filling_ = std::move(idle_.back());
      idle_.pop_back();
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
      if (unit->host_fallback) {
        host_fallback_ = unit;
        break;
      }
      if (unit->count > filling_.batch->room()) {
        next_ = unit;
        break;
      }
      filling_.batch->add(pool_->batch(*unit));
      filling_.units.push_back(unit);
      filling_.timeline.packets += unit->count;
      worked = true;
    }
    const bool full = next_ != nullptr || filling_.batch->room() == 0;
    const bool due = in_flight_.empty() || is_drained() || host_fallback_ != nullptr || waited_enough();
    if (filling_.units.empty() && host_fallback_ != nullptr) {
      idle_.push_back(std::move(filling_));
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
  bool worked = collect();
  if (in_flight_.empty() && !filling_.batch) {  // under a steady load that seldom is so; then packets tell the time
    ticker_.poll();
  }
  worked = fill() || worked;
  worked = take_host_fallback() || worked;
  if (in_flight_.empty() && !filling_.batch && host_fallback_ == nullptr && is_drained()) {
    out_->close();
    return Progress::kFinished;
  }
  return worked ? Progress::kWorked : Progress::kIdle;
}

}  // namespace catena::runtime
