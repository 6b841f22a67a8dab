// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/trace.hpp"
#include "base/hostcopy/host_mover.hpp"
#include "io/live_clock.hpp"
#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "packet/memory/unit_queue.hpp"
#include "pipeline/device_use.hpp"
#include "pipeline/host_recovery.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/ticker.hpp"
#include "pipeline/unit_records.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace catena::runtime {

struct DeviceStageOptions {
  std::uint32_t units_per_launch = 8;  ///< at most; see bounds
  std::uint32_t in_flight = 3;
  /// A launch that takes longer counts as a lost device.
  std::chrono::nanoseconds limit = std::chrono::seconds(10);
  /// A launch that is not full waits at most this long for more packets, and not at all if the device is idle.
  std::chrono::nanoseconds max_batch_delay = std::chrono::microseconds(50);
  /// Fields whose newest values the plan leaves only in the shared buffer when a unit reaches this NF. Without the
  /// device the stage brings them back first. 0: units that wait for this NF can continue without the device.
  packet::FieldSet only_on_device = 0;
  /// Shared by the device stages of a chain; must outlive them. Null: the stage leaves the plan by itself.
  DeviceUse* use = nullptr;
  /// If set, receives the launches of this stage, as spans of these tracks; must outlive it. Failed launches are not in
  /// it.
  ///   0           on the host: fill (its first unit was taken .. it was full or due), submit (.. everything was
  ///               enqueued), deliver (it was found done .. its units were passed on)
  ///   1, 2, ..    on the device: to device, kernel, to host; concurrent launches are on separate tracks
  trace::SpanLog* trace = nullptr;
  /// The source's, for Nf::tick().
  std::optional<io::LiveClock> live_clock = {};
  /// For the NF's lines; null if the chain writes no lines.
  RecordLog* lines = nullptr;
  /// Initial bounds of launches on the device. max_packets is limited to one unit .. units_per_launch units; 0: the
  /// latter.
  kernel::LaunchBounds bounds = {};
  /// Opens the engine for copies between packets and staging.
  std::function<Result<std::unique_ptr<hostcopy::Engine>>()> open_engine = [] {
    return hostcopy::open_engine(hostcopy::kCpuEngine);
  };
};

/// An NF on a device: fills a batch of units, starts copy + kernel + copy, and polls. Units leave in order.
///
/// When the device fails or exceeds its limit, here or at another stage of its DeviceUse, no further launch is started,
/// and the log reports it at once. Running launches may still succeed. After a failed launch the stage waits, within
/// the limit, until nothing of it runs any more. Its units, and all later ones, are decided by the NF's CPU
/// implementation, after a ReadBack if the plan needs one. Packets are dropped with reason device_failed if the device
/// may have changed them in part, or has their newest bytes and does not return them. If one of several small units in
/// a group is dropped, the whole group is. If the device may still write to the packets, their slots are never reused.
///
/// Once another device is available, or the same one again, the stage can continue with it: attach() -> bind(). The
/// same holds for another partition of its device.
class DeviceStage final : public PacketStage {
 public:
  /// A device prepared for this stage's launches.
  class DeviceBinding;

  static Result<std::unique_ptr<DeviceStage>> create(nf::Instance& instance, std::uint32_t position,
                                                     kernel::DeviceNf& device_nf, memory::PacketPool& pool,
                                                     memory::UnitQueue& in, memory::UnitQueue& out,
                                                     DeviceStageOptions const& options);
  ~DeviceStage() override;
  Result<Progress> poll() override;
  /// Creates a binding for bind(), beside a running stage: takes as long as create(). `bounds`: as options.bounds.
  /// Errors: as create(). Any thread.
  Result<std::unique_ptr<DeviceBinding>> attach(kernel::DeviceNf& device_nf, packet::FieldSet only_on_device,
                                                DeviceUse& use, kernel::LaunchBounds const& bounds = {});
  /// The same on the stage's current device, for the only thread that binds.
  Result<std::unique_ptr<DeviceBinding>> attach(kernel::LaunchBounds const& bounds);
  /// Of the current binding, for the only thread that binds.
  device::Device& device() const;
  /// The stage takes `binding` as soon as nothing uses the current one. If both have the same DeviceUse, the stage
  /// starts no launch until then, and takes nothing once the device is out of use. A binding to another device is
  /// taken only when the current device is out of use. unbind() returns the previous binding. With another device,
  /// downstream stages must have taken theirs first: they will get units whose data is only on it. Any thread, one
  /// call at a time.
  void bind(std::unique_ptr<DeviceBinding> binding);
  /// Whether the last binding was taken.
  bool has_taken_binding() const { return next_binding_.load(std::memory_order_acquire) == nullptr; }
  /// The binding before the last one taken, or one not taken, so that it is not destroyed on the packet path.
  /// Any thread.
  std::unique_ptr<DeviceBinding> unbind();
  /// Position of its NF in the chain.
  std::uint32_t position() const { return position_; }
  /// OK, or why the device is out of use for the chain, even if this stage had no work left. Any thread.
  Status device_status() const;
  /// True if a device never answered: its work may still run, and keeps its memory.
  bool abandoned() const;

 private:
  /// A launch in flight, for the trace.
  struct LaunchTimeline {
    std::uint32_t number = 0;
    std::uint32_t lane = 0;  ///< its batch in the stage; launches of a lane are sequential
    std::uint32_t packets = 0;
    std::int64_t first_unit_ns = 0;    ///< its first unit was taken
    std::int64_t submit_begin_ns = 0;  ///< it was full, or due
    std::int64_t submit_end_ns = 0;    ///< everything was enqueued
  };
  struct InFlightBatch {
    enum class State : std::uint8_t {
      kRunning,
      kDraining,  ///< failed: enqueued work may still run
      kSettling,  ///< ends without the device
    };
    std::unique_ptr<nf::DeviceBatch> batch;
    std::vector<memory::Unit*> units;
    std::vector<std::size_t> group_ends;          ///< into `units`: units of a group were added together
    std::vector<std::uint32_t> slots;             ///< of the groups, while the batch runs
    std::uint32_t open_packets = 0;               ///< of units after the last group
    std::chrono::steady_clock::time_point since;  ///< filled, submitted, or failed
    LaunchTimeline timeline;
    State state = State::kRunning;
    bool may_still_run = false;  ///< of a settling batch
    std::size_t settled_groups = 0;
    std::size_t recovered = 0;  ///< number of units settled, or waiting only for others of their group
  };
  DeviceStage(nf::Instance& instance, std::uint32_t position, memory::PacketPool& pool, memory::UnitQueue& in,
              memory::UnitQueue& out, DeviceStageOptions const& options);
  bool is_moving_on() const;
  void take_binding();
  DeviceUse& use() const;
  bool collect();
  void advance();
  bool fill();
  void close_group();
  void submit();
  void deliver(InFlightBatch& flight);
  void log(InFlightBatch& flight, std::int64_t ready_ns);
  bool is_traced(InFlightBatch const& flight) const;
  void fail(Status const& status);
  void notice();
  bool drain(InFlightBatch& flight);
  bool settle(InFlightBatch& flight);
  bool take_host_fallback();
  /// Whether data of the unit is on a lost device.
  bool is_stale(memory::Unit const& unit) const { return unit.device_epoch != 0 && unit.device_epoch != use().epoch(); }
  HostRecovery::Outcome recovery(memory::Unit const& unit);
  memory::Unit* take_unit();
  bool is_drained() const;
  bool waited_enough() const;

  nf::Instance* instance_;
  std::uint32_t position_;
  memory::PacketPool* pool_;
  memory::UnitQueue* in_;
  memory::UnitQueue* out_;
  DeviceStageOptions options_;
  Ticker ticker_;
  std::unique_ptr<DeviceBinding> binding_;  ///< never null
  mutable std::mutex binding_mutex_;        ///< for other readers than the polling thread
  std::atomic<DeviceBinding*> next_binding_{nullptr};
  std::atomic<bool> is_moving_on_{false};  ///< next_binding_ is of the stage's current device
  std::atomic<DeviceBinding*> reclaimable_{nullptr};
  std::deque<InFlightBatch> in_flight_;
  InFlightBatch filling_;
  std::uint32_t launches_ = 0;               ///< number started
  memory::Unit* next_ = nullptr;             ///< taken from the ring, but too large for the last launch
  memory::Unit* host_fallback_ = nullptr;    ///< waits until the units before it are done
  std::chrono::nanoseconds launch_time_{0};  ///< of a launch, on average
  std::chrono::steady_clock::time_point last_submit_;
  packet::FieldSet lost_fields_ = 0;  ///< fields of units that only previous devices had
  DeviceUse own_use_;
  Status device_status_;
  bool abandoned_ = false;
};

class DeviceStage::DeviceBinding {
 public:
  ~DeviceBinding();
  DeviceBinding(DeviceBinding const&) = delete;
  DeviceBinding& operator=(DeviceBinding const&) = delete;

 private:
  friend class DeviceStage;
  DeviceBinding(DeviceStage const& stage, kernel::DeviceNf& device_nf, packet::FieldSet only_on_device, DeviceUse& use);

  kernel::DeviceNf* device_nf_;
  packet::FieldSet only_on_device_;
  DeviceUse* use_;
  std::vector<InFlightBatch> idle_;
  hostcopy::HostMover mover_;  ///< for the batches, and destroyed before them
  HostRecovery recovery_;
};

}  // namespace catena::runtime
