// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/host_mover.hpp"
#include "core/trace.hpp"
#include "io/live_clock.hpp"
#include "memory/packet_pool.hpp"
#include "memory/unit_queue.hpp"
#include "nf/instance.hpp"
#include "runtime/device_use.hpp"
#include "runtime/rescue.hpp"
#include "runtime/stage.hpp"
#include "runtime/succession.hpp"
#include "runtime/ticker.hpp"
#include "runtime/unit_lines.hpp"

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
  /// A launch that is not full waits at most this long for more packets, and not at all when the device is idle.
  std::chrono::nanoseconds max_batch_delay = std::chrono::microseconds(50);
  /// Fields whose newest values the plan leaves in the shared buffer alone when a unit comes to this NF. Without the
  /// device the stage brings them back first. None: a unit that waits for this NF can go on without the device.
  packet::FieldSet only_on_device = 0;
  /// Shared by the device stages of a chain; must outlive them. Null: the stage leaves the plan alone.
  DeviceUse* use = nullptr;
  /// Where given, gets the launches of this stage, as spans of these tracks; must outlive it. Launches that the device
  /// fails are not in it.
  ///   0           on the host: fill (its first unit was taken .. it was full or due), submit (.. everything was
  ///               enqueued), deliver (it was found done .. its units had gone on)
  ///   1, 2, ..    on the device: to device, kernel, to host; launches that run side by side are on tracks of their own
  trace::SpanLog* trace = nullptr;
  /// The source's, for Nf::tick().
  std::optional<io::LiveClock> live_clock = {};
  /// Where the NF's lines go; null in a chain that writes none.
  LineBook* lines = nullptr;
  /// What launches take of the device at first. Its max_packets, 0 for as many as units_per_launch have, are never more
  /// than those and never less than a unit.
  kernel::LaunchBounds bounds = {};
  /// Makes what copies between packets and staging; null: the CPU does.
  std::function<std::unique_ptr<copy::Engine>()> make_engine = {};
};

/// An NF on a device: fills a batch of units, starts copy + kernel + copy, and polls. Units leave in order.
///
/// When the device fails or exceeds its limit, here or at another stage of its DeviceUse, no launch is started any
/// more, and the log says so at once. Launches that run may end well. Of one that failed the stage waits, within the
/// limit, until nothing of it runs any more; its units, and all later ones, are decided by the NF's CPU implementation,
/// after a ReadBack where the plan needs one. Packets are dropped with reason device_failed where the device may have
/// half changed them, or has the newest bytes and does not give them back: of small units that an NF got together, all
/// if one is. Where it may still write to the packets, their slots are never given out again.
///
/// Once another device is there, or the same one anew, the stage can go on with that: attach() -> offer(). So it can
/// with another part of its device.
class DeviceStage final : public Stage {
 public:
  /// A device, ready for this stage's launches.
  class Attachment;

  static Result<std::unique_ptr<DeviceStage>> create(nf::Instance& instance, std::uint32_t position,
                                                     kernel::DeviceNf& device_nf, memory::PacketPool& pool,
                                                     memory::UnitQueue& in, memory::UnitQueue& out,
                                                     DeviceStageOptions const& options);
  ~DeviceStage() override;
  Result<Progress> poll() override;
  /// For offer(), beside a running stage: takes as long as create(). `bounds`: as options.bounds. Errors: as create().
  /// Any thread.
  Result<std::unique_ptr<Attachment>> attach(kernel::DeviceNf& device_nf, packet::FieldSet only_on_device,
                                             DeviceUse& use, kernel::LaunchBounds const& bounds = {});
  /// The same on the device that the stage has, for who alone makes offers to it.
  Result<std::unique_ptr<Attachment>> attach(kernel::LaunchBounds const& bounds);
  /// That the stage has; for who alone makes offers to it.
  device::Device& device() const;
  kernel::DeviceNf const& kernel() const;
  /// An NF that takes the place of this stage's, and its kernel.
  struct Next {
    std::unique_ptr<nf::Instance> instance;
    std::unique_ptr<Attachment> attachment;
  };
  /// The attachment of a Next on the device that the stage has, for who alone makes offers to it. `kernel`: on the same
  /// device, with the same plan as kernel(). `max_packets`: as options.bounds. Errors: as create(); Unavailable where
  /// the device is out of use.
  Result<std::unique_ptr<Attachment>> attach_next(std::shared_ptr<kernel::DeviceNf> kernel, std::uint32_t max_packets);
  Succession<Next>& successors() { return successors_; }
  /// The stage takes `attachment` as soon as it has nothing of what it has now: of a device that is out of use, or,
  /// where the attachment is of the same DeviceUse, of launches, for which it begins no other one. That of another
  /// device is not taken as long as this one is in use, and of this one nothing is once it is out of use. What it had
  /// is given back to reclaim(). With another device the stages behind this one must have taken theirs: they will get
  /// units that are on it alone. Any thread, one offer at a time.
  void offer(std::unique_ptr<Attachment> attachment);
  /// Whether the last offer was taken.
  bool has_taken_offer() const { return offered_.load(std::memory_order_acquire) == nullptr; }
  /// What was attached before the last offer that was taken, or an offer that was not, so that it does not end on the
  /// packet path. Any thread.
  std::unique_ptr<Attachment> reclaim();
  /// Which NF of the chain it is.
  std::uint32_t position() const { return position_; }
  /// OK, or why the device is out of use for the chain, whether this stage still had work or not. Any thread.
  Status device_status() const;
  /// True if a device never answered: work on it may still run, and its memory was left to it.
  bool abandoned() const;

 private:
  /// A launch on its way, for the trace.
  struct LaunchTimeline {
    std::uint32_t number = 0;
    std::uint32_t lane = 0;  ///< which of the stage's batches it is: launches of one lane follow one another
    std::uint32_t packets = 0;
    std::int64_t first_unit_ns = 0;    ///< its first unit was taken
    std::int64_t submit_begin_ns = 0;  ///< it was full, or due
    std::int64_t submit_end_ns = 0;    ///< everything was enqueued
  };
  struct InFlightBatch {
    enum class State : std::uint8_t {
      kRunning,
      kDraining,  ///< failed: what was enqueued may still run
      kSettling,  ///< ends without the device
    };
    std::unique_ptr<nf::DeviceBatch> batch;
    std::vector<memory::Unit*> units;
    std::vector<std::size_t> group_ends;          ///< into `units`: those of a group were added to the batch together
    std::vector<std::uint32_t> slots;             ///< of the groups, for as long as the batch runs
    std::uint32_t open_packets = 0;               ///< of units behind the last group
    std::chrono::steady_clock::time_point since;  ///< filled, submitted, or failed
    LaunchTimeline timeline;
    State state = State::kRunning;
    bool may_still_run = false;  ///< of one that is settling
    std::size_t settled_groups = 0;
    std::size_t rescued = 0;  ///< so many units are settled, or wait only for others of their group
  };
  DeviceStage(nf::Instance& instance, std::uint32_t position, memory::PacketPool& pool, memory::UnitQueue& in,
              memory::UnitQueue& out, DeviceStageOptions const& options);
  bool is_moving_on() const;
  void take_offer();
  bool waits_for_next();
  void take_next(std::uint32_t version);
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
  /// Whether what device NFs left of the unit is on a device that was lost.
  bool is_stale(memory::Unit const& unit) const { return unit.device_epoch != 0 && unit.device_epoch != use().epoch(); }
  Rescue::Outcome rescue(memory::Unit const& unit);
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
  std::unique_ptr<Attachment> attached_;  ///< never null
  mutable std::mutex attached_mutex_;     ///< for others who read it than the thread that polls
  std::atomic<Attachment*> offered_{nullptr};
  std::atomic<bool> is_moving_on_{false};  ///< offered_ is of the device that the stage has
  std::atomic<Attachment*> reclaimable_{nullptr};
  Succession<Next> successors_;
  std::deque<InFlightBatch> in_flight_;
  InFlightBatch filling_;
  std::uint32_t launches_ = 0;    ///< that were begun
  memory::Unit* next_ = nullptr;  ///< taken from the ring, but too large for the last launch, or of another version
  memory::Unit* host_fallback_ = nullptr;    ///< waits until the units in front of it are done
  std::chrono::nanoseconds launch_time_{0};  ///< of a launch, on average
  std::chrono::steady_clock::time_point last_submit_;
  packet::FieldSet lost_fields_ = 0;  ///< that devices before this one alone had of units
  DeviceUse own_use_;
  Status device_status_;
  bool abandoned_ = false;
};

class DeviceStage::Attachment {
 public:
  ~Attachment();
  Attachment(Attachment const&) = delete;
  Attachment& operator=(Attachment const&) = delete;

 private:
  friend class DeviceStage;
  Attachment(DeviceStage const& stage, kernel::DeviceNf& device_nf, packet::FieldSet only_on_device, DeviceUse& use);

  std::shared_ptr<kernel::DeviceNf> own_kernel_;  ///< device_nf_, where it is not the device side's
  kernel::DeviceNf* device_nf_;
  packet::FieldSet only_on_device_;
  DeviceUse* use_;
  std::vector<InFlightBatch> idle_;
  copy::HostMover mover_;  ///< for the batches, and gone before them
  Rescue rescue_;
};

}  // namespace catena::runtime
