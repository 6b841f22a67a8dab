// SPDX-License-Identifier: Apache-2.0
#include "dataplane/stage.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace catena::dataplane {
namespace {

/// A launch counts for one part in this many in the average that the next delay is made of.
constexpr int kLaunchTimeWeight = 8;
/// That rx takes in one poll, at most.
constexpr std::uint32_t kUnitsPerPoll = 4;

std::int64_t to_ns(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

std::uint64_t now_ns() { return static_cast<std::uint64_t>(to_ns(std::chrono::steady_clock::now())); }

}  // namespace

RxStage::RxStage(Source& source, PacketPool& pool, Ring& out, std::atomic<bool> const& stop)
    : Stage("rx"), source_(&source), pool_(&pool), out_(&out), stop_(&stop) {}

Result<Progress> RxStage::poll() {
  // a worker that has other stages too comes back late: a source that gives full units is asked again at once
  bool worked = false;
  for (std::uint32_t units = 0; units < kUnitsPerPoll; ++units) {
    bool is_full = false;
    const Progress progress = receive(is_full);
    if (progress == Progress::kFinished) {
      return progress;
    }
    worked = worked || progress == Progress::kWorked;
    if (!is_full) {
      break;
    }
  }
  return worked ? Progress::kWorked : Progress::kIdle;
}

Progress RxStage::receive(bool& is_full) {
  if (stop_->load(std::memory_order_relaxed) || source_->finished() || !error_.ok()) {
    out_->close();
    return Progress::kFinished;
  }
  Unit* unit = pool_->acquire_unit();
  if (unit == nullptr) {
    ++starved_polls_;
    return Progress::kIdle;
  }
  bool starved = false;
  const std::uint64_t first_index = next_index_;
  error_ = source_->receive(*pool_, *unit, next_index_, starved);
  starved_polls_ += starved ? 1 : 0;
  if (unit->count == 0) {
    pool_->release_unit(unit);
    return Progress::kIdle;
  }
  unit->first_index = first_index;
  unit->end_index = next_index_;
  unit->arrival_ns = now_ns();
  for (const std::uint32_t slot : unit->used_slots()) {
    bytes_ += pool_->meta().length[slot];
  }
  count(unit->count);
  is_full = unit->count == pool_->unit_packets();
  out_->push(unit);
  return Progress::kWorked;
}

CpuStage::CpuStage(nf::Instance& instance, std::uint32_t position, PacketPool& pool, Ring& in, Ring& out)
    : Stage(instance.name()), instance_(&instance), position_(position), pool_(&pool), in_(&in), out_(&out) {}

Result<Progress> CpuStage::poll() {
  Unit* unit = in_->pop();
  if (unit == nullptr) {
    if (in_->drained()) {
      out_->close();
      return Progress::kFinished;
    }
    return Progress::kIdle;
  }
  instance_->process(pool_->batch(*unit));
  if (instance_->outcome().recording()) {
    take_records(*instance_, position_, *unit);
  }
  count(unit->count);
  out_->push(unit);
  return Progress::kWorked;
}

DeviceStage::DeviceStage(nf::Instance& instance, std::uint32_t position, kernel::DeviceNf& device_nf, PacketPool& pool,
                         Ring& in, Ring& out, DeviceStageOptions const& options)
    : Stage(instance.name()),
      instance_(&instance),
      position_(position),
      device_nf_(&device_nf),
      pool_(&pool),
      in_(&in),
      out_(&out),
      options_(options) {}

Result<std::unique_ptr<DeviceStage>> DeviceStage::create(nf::Instance& instance, std::uint32_t position,
                                                         kernel::DeviceNf& device_nf, PacketPool& pool, Ring& in,
                                                         Ring& out, DeviceStageOptions const& options) {
  std::unique_ptr<DeviceStage> stage(new DeviceStage(instance, position, device_nf, pool, in, out, options));
  for (std::uint32_t i = 0; i < options.in_flight; ++i) {
    Flight flight;
    CATENA_ASSIGN_OR_RETURN(
        flight.batch, nf::DeviceBatch::create(instance, device_nf, options.units_per_launch * pool.unit_packets()));
    if (options.trace != nullptr) {
      CATENA_RETURN_IF_ERROR(flight.batch->start_trace());
      flight.trace.lane = options.in_flight - 1 - i;  // the last one made is the first one used
    }
    stage->idle_.push_back(std::move(flight));
  }
  return stage;
}

DeviceStage::~DeviceStage() {
  if (abandoned_) {
    // the device may still write here: this memory is kept until the process ends; out of memory ends it anyway
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new)
    static auto* const kAbandoned = new std::vector<std::unique_ptr<nf::DeviceBatch>>();
    for (Flight& flight : idle_) {
      kAbandoned->push_back(std::move(flight.batch));
    }
  }
}

void DeviceStage::deliver(Flight& flight) {
  for (Unit* unit : flight.units) {
    if (instance_->outcome().recording()) {
      take_records(*instance_, position_, *unit);
    }
    count(unit->count);
  }
  // together: the next stage makes one launch of them
  out_->push(flight.units);
  flight.units.clear();
}

/// Into the trace: a launch that has just been delivered.
void DeviceStage::log(Flight& flight, std::int64_t ready_ns) {
  flight.trace.ready_ns = ready_ns;
  flight.trace.delivered_ns = to_ns(std::chrono::steady_clock::now());
  flight.trace.device.reset();
  if (Result<std::optional<kernel::LaunchTimes>> times = flight.batch->times(); times.ok()) {
    flight.trace.device = *times;
  } else {
    options_.trace->fail(times.status());
  }
  options_.trace->add(flight.trace);
}

void DeviceStage::fail(Status const& status) {
  device_status_ = status;
  abandoned_ = absl::IsDeadlineExceeded(status);
  spdlog::error(
      "NF {}: device {} is out of use: {}. From now on the CPU implementation decides its packets; those whose newest "
      "bytes are on the device alone are dropped (device_failed).",
      instance_->name(), device_nf_->device().info().name, status.ToString());
  const std::size_t started = in_flight_.size();
  if (filling_.batch) {
    in_flight_.push_back(std::move(filling_));
    filling_ = Flight{};
  }
  for (std::size_t i = 0; i < in_flight_.size(); ++i) {
    Flight& flight = in_flight_[i];
    const bool half_written = i < started && flight.batch->writes_packets();
    if (half_written || !options_.host_is_current) {
      flight.batch->drop_all();
    } else {
      flight.batch->finish_on_cpu();
    }
    for (Unit* unit : flight.units) {
      unit->off_plan = true;
      unit->quarantined = unit->quarantined || (half_written && abandoned_);
    }
    deliver(flight);
    idle_.push_back(std::move(flight));
  }
  in_flight_.clear();
}

Unit* DeviceStage::take_unit() { return next_ != nullptr ? std::exchange(next_, nullptr) : in_->pop(); }

bool DeviceStage::is_drained() const { return next_ == nullptr && in_->drained(); }

/// The next unit that the CPU implementation is to decide though a device is there, or was. True if there was one.
bool DeviceStage::take_off_plan() {
  if (off_plan_ == nullptr && !device_status_.ok()) {
    off_plan_ = take_unit();
  }
  if (off_plan_ == nullptr || !in_flight_.empty() || filling_.batch) {
    return false;
  }
  Flight single;
  single.units.push_back(std::exchange(off_plan_, nullptr));
  Unit& unit = *single.units.front();
  if (unit.off_plan || options_.host_is_current) {
    instance_->process(pool_->batch(unit));
  } else {
    instance_->drop_alive(pool_->batch(unit), nf::FrameworkReason::kDeviceFailed);
  }
  unit.off_plan = true;
  deliver(single);
  return true;
}

bool DeviceStage::collect() {
  bool worked = false;
  while (!in_flight_.empty()) {
    Flight& oldest = in_flight_.front();
    const bool traced = options_.trace != nullptr && !options_.trace->full();
    const std::int64_t looked_ns = traced ? to_ns(std::chrono::steady_clock::now()) : 0;
    Result<bool> done = oldest.batch->poll();
    if (!done.ok()) {
      fail(done.status());
      return true;
    }
    if (!*done) {
      if (std::chrono::steady_clock::now() - oldest.since > options_.limit) {
        fail(absl::DeadlineExceededError(
            concat("stage ", name(), " waited more than ",
                   std::chrono::duration_cast<std::chrono::milliseconds>(options_.limit).count(), " ms for device ",
                   device_nf_->device().info().name)));
        return true;
      }
      break;
    }
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - oldest.since;
    launch_time_ += (took - launch_time_) / kLaunchTimeWeight;
    deliver(oldest);
    if (traced) {
      log(oldest, looked_ns);
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
  const auto now = std::chrono::steady_clock::now();
  return now - last_submit_ > launch_time_ / options_.in_flight || now - filling_.since > options_.max_batch_delay;
}

void DeviceStage::submit() {
  filling_.since = last_submit_ = std::chrono::steady_clock::now();
  const Status status = filling_.batch->submit();
  if (options_.trace != nullptr) {
    filling_.trace.submit_begin_ns = to_ns(filling_.since);
    filling_.trace.submit_end_ns = to_ns(std::chrono::steady_clock::now());
  }
  in_flight_.push_back(std::move(filling_));
  filling_ = Flight{};
  if (!status.ok()) {
    fail(status);
  }
}

bool DeviceStage::fill() {
  bool worked = false;
  while (device_status_.ok()) {
    if (off_plan_ != nullptr && !filling_.batch) {
      return worked;
    }
    if (!filling_.batch) {
      if (idle_.empty() || (next_ == nullptr && in_->empty())) {
        return worked;
      }
      filling_ = std::move(idle_.back());
      idle_.pop_back();
      filling_.since = std::chrono::steady_clock::now();
      filling_.trace.first_unit_ns = to_ns(filling_.since);
      filling_.trace.packets = 0;
    }
    while (off_plan_ == nullptr) {
      Unit* unit = take_unit();
      if (unit == nullptr) {
        break;
      }
      if (unit->off_plan) {
        off_plan_ = unit;
        break;
      }
      if (unit->count > filling_.batch->room()) {
        next_ = unit;
        break;
      }
      filling_.batch->add(pool_->batch(*unit));
      filling_.units.push_back(unit);
      filling_.trace.packets += unit->count;
      worked = true;
    }
    const bool full = next_ != nullptr || filling_.batch->room() == 0;
    const bool due = in_flight_.empty() || is_drained() || off_plan_ != nullptr || waited_enough();
    if (filling_.units.empty() && off_plan_ != nullptr) {
      idle_.push_back(std::move(filling_));
      filling_ = Flight{};
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
  bool worked = collect();
  worked = fill() || worked;
  worked = take_off_plan() || worked;
  if (in_flight_.empty() && !filling_.batch && off_plan_ == nullptr && is_drained()) {
    out_->close();
    return Progress::kFinished;
  }
  return worked ? Progress::kWorked : Progress::kIdle;
}

TxStage::TxStage(Sink& sink, PacketPool& pool, Ring& in, Recorder* recorder)
    : Stage("tx"), sink_(&sink), pool_(&pool), in_(&in), recorder_(recorder) {}

Result<Progress> TxStage::poll() {
  Unit* unit = in_->pop();
  if (unit == nullptr) {
    if (!in_->drained()) {
      return Progress::kIdle;
    }
    CATENA_RETURN_IF_ERROR(sink_->finish());
    CATENA_RETURN_IF_ERROR(recorder_ != nullptr ? recorder_->finish() : absl::OkStatus());
    return Progress::kFinished;
  }
  std::uint64_t dropped = 0;
  packet::MetaColumns const& meta = pool_->meta();
  for (const std::uint32_t slot : unit->used_slots()) {
    dropped += meta.verdict[slot] == static_cast<std::uint8_t>(packet::Verdict::kDrop) ? 1 : 0;
  }
  const Status recorded = recorder_ != nullptr ? recorder_->write(*unit) : absl::OkStatus();
  const std::uint32_t packets = unit->count;
  const std::uint64_t arrival_ns = unit->arrival_ns;
  // a quarantined unit has nothing to send
  const Status sent = unit->quarantined ? absl::OkStatus() : sink_->send(*pool_, *unit);
  latency_.add(now_ns() - arrival_ns, packets - dropped);
  dropped_.store(dropped_.load(std::memory_order_relaxed) + dropped, std::memory_order_relaxed);
  count(packets - dropped);
  if (!unit->quarantined) {
    pool_->release_unit(unit);
  }
  CATENA_RETURN_IF_ERROR(sent);
  CATENA_RETURN_IF_ERROR(recorded);
  return Progress::kWorked;
}

}  // namespace catena::dataplane
