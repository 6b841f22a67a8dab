// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "device/device.hpp"
#include "kernel/launch.hpp"
#include "runtime/device_stage.hpp"
#include "runtime/pause.hpp"
#include "runtime/process_stage.hpp"
#include "share/division.hpp"
#include "share/traffic.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace catena::runtime {

/// A part as it is told to the process of an NF.
nf_process::GpuPart as_given(share::Part const& part);

/// How the NFs of a chain share their GPU, among themselves and with those of other chains: which part of it each has,
/// and how many packets a launch. Where the division has other parts for them, because in mode `scheduled` speeds have
/// changed or because chains came or left, the stages take those between two launches. Of a device that comes back
/// after a loss they have the parts that there are then.
///
/// Call order: create() -> bounds_of() for each stage that is made -> add() -> start() -> look() and bounds_on() by one
/// thread -> stop(). Must outlive the stages.
class GpuSharing {
 public:
  struct Nf {
    std::string name;
    /// What the NF costs for packets of so many bytes; none: it was not measured. Any thread.
    std::function<std::optional<share::NfCost>(std::uint32_t packet_bytes)> cost;
    double latency_limit_ns = 1e6;
    std::uint32_t group_size = 64;    ///< of its kernel
    std::uint32_t stages = 1;         ///< that share its part: one a shard
    std::uint32_t least_packets = 1;  ///< of a launch's room, whatever the part: a unit
    std::uint32_t most_packets = UINT32_MAX;
    bool is_elsewhere = false;  ///< in a process of its own, which keeps to the part itself
    /// That wait for it where its part is too small: so many never do for the next launch alone.
    std::uint64_t backlog_packets = UINT64_MAX;
  };
  using Traffic = share::TrafficSample;
  struct Allocation {
    std::string nf;
    std::uint32_t units = 0;           ///< compute units; where parts are none of those, so many of what there is
    std::uint32_t launch_packets = 0;  ///< at most, of each of its stages
    bool is_taken = true;              ///< the NF keeps to it now; one elsewhere says so itself
  };

  /// `packet_bytes`: that are expected on average. Errors: FailedPrecondition in mode `scheduled` for an NF that was
  /// not measured; as share::Division::join() and Device::divide(); Unimplemented for a mode or parts that the device
  /// does not have.
  static Result<std::unique_ptr<GpuSharing>> create(device::Device& device, chain::SharingOptions const& options,
                                                    std::vector<Nf> nfs, std::uint32_t packet_bytes);
  GpuSharing(GpuSharing const&) = delete;
  GpuSharing& operator=(GpuSharing const&) = delete;

  /// Of each stage of NF number `nf`, at first.
  kernel::LaunchBounds bounds_of(std::size_t nf) const { return first_bounds_[nf]; }
  /// A stage of NF number `nf`; it outlives start() .. stop().
  void add(std::size_t nf, DeviceStage& stage) { stages_[nf].push_back(&stage); }
  /// Where NF number `nf`, which is elsewhere, is told its part; it outlives start() .. stop().
  void add(std::size_t nf, ProcessPart& part);
  /// Whether parts may become others while packets run.
  bool has_changes() const { return options_.mode == share::Mode::kScheduled || !is_alone(); }
  /// How long after one look() the next one is, if nothing fails.
  std::chrono::milliseconds period() const;
  static constexpr std::chrono::hours kNever{24};
  /// Before look(). `traffic`: what runs, now; any thread. `returns`: who looks after the device brings it back where
  /// it is lost; else nothing is shared any more then.
  void start(std::function<Traffic()> traffic, bool returns);
  /// Has stages take other parts where there are some, until `pause` ends, and says how long until the next look. What
  /// fails is tried again, ever later, and said once.
  std::chrono::milliseconds look(Pause& pause);
  /// What launches of each NF are to take of a device that has come back: its part, as it is now. From here on that is
  /// what the NFs have. Errors: as Device::divide();
  /// FailedPrecondition: it is another device.
  Result<std::vector<kernel::LaunchBounds>> bounds_on(device::Device& device);
  /// After the last look(). Stages keep what they have.
  void stop();

  /// "scheduled, in green contexts of 8 compute units". Any thread.
  std::string describe() const;
  /// "fw: 8 of 132 compute units, at most 2048 packets a launch". Any thread.
  std::string describe(Allocation const& part) const;
  std::vector<Allocation> allocations() const;
  /// Whether nothing is shared any more, because the device was lost for good. Any thread.
  bool is_over() const { return !returns_ && is_lost(); }
  /// How often parts were handed out anew. Any thread.
  std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

 private:
  using Partitions = std::vector<std::shared_ptr<device::Partition>>;  ///< of each NF, or null
  GpuSharing(device::DeviceInfo info, chain::SharingOptions const& options, std::vector<Nf> nfs,
             std::uint32_t packet_bytes);
  Status settle_shape(device::Device& device);
  Status settle_turns(device::Device& device);
  Result<std::vector<share::NfDemand>> demands();
  std::optional<share::NfCost> cost_of(std::size_t nf, std::uint32_t packet_bytes);
  bool does_any_part_for(share::NfCost const& cost, double limit_ns) const;
  Result<Partitions> divide(device::Device& device, std::vector<share::Part> const& parts) const;
  std::uint32_t launch_packets(std::size_t nf, share::Share const& share) const;
  Result<std::vector<kernel::LaunchBounds>> bounds_for(device::Device& device, std::vector<share::Part> const& parts);
  kernel::LaunchBounds bounds(std::size_t nf, share::Share const& share,
                              std::shared_ptr<device::Partition> const& partition);
  Status follow(Pause& pause);
  Status hand_out(std::vector<share::Part> const& parts, Pause& pause);
  static Result<bool> hand_to(DeviceStage& stage, kernel::LaunchBounds const& bounds, Pause& pause);
  void give(std::vector<share::Part> const& parts);
  void set_parts(std::vector<share::Part> parts, bool is_mixed);
  void tell();
  bool is_lost() const;
  bool has_lost(std::size_t nf) const;
  bool are_all_elsewhere() const;
  bool is_alone() const { return options_.divisions == nullptr && !options_.given; }
  Result<std::vector<share::Part>> parts_now();

  device::DeviceInfo info_;
  chain::SharingOptions options_;
  std::vector<Nf> nfs_;
  share::GpuShape shape_;
  std::uint32_t units_ = 0;  ///< compute units that are shared
  bool takes_turns_ = false;
  device::Turns turns_;
  std::vector<kernel::LaunchBounds> first_bounds_;  ///< of each NF, until start()
  std::vector<std::vector<DeviceStage*>> stages_;   ///< of each NF
  std::vector<ProcessPart*> elsewhere_;             ///< of each NF, or null
  std::atomic<bool> returns_{false};
  int failures_ = 0;                ///< in a row
  std::vector<share::Part> told_;   ///< that the NFs have: to who gives the parts
  mutable std::mutex parts_mutex_;  ///< of what follows; others read it than who looks
  std::vector<share::Part> parts_;  ///< that the stages have
  bool is_mixed_ = false;           ///< some stages have parts_, others such as could not be handed out to all
  std::mutex traffic_mutex_;        ///< of what follows; other chains' threads ask, too
  std::vector<std::optional<share::NfCost>> known_costs_;  ///< of each NF, the last that were
  std::function<Traffic()> traffic_;                       ///< null: the chain does not run yet, or no more
  share::TrafficMeter meter_;
  std::atomic<std::uint64_t> changes_{0};
  std::shared_ptr<share::Division> division_;
  std::unique_ptr<share::Division::Member> member_;  ///< gone before what it asks
};

}  // namespace catena::runtime
