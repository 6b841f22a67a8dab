// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"
#include "gpu/launch/launch.hpp"
#include "pipeline/device_stage.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/process_stage.hpp"
#include "pipeline/run_options.hpp"
#include "plan/sharing/partition_plan.hpp"
#include "plan/sharing/traffic.hpp"

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

/// A partition in the form for the process of an NF.
nf_process::GpuPart as_given(share::Part const& part);

/// GPU sharing of a chain's NFs, among themselves and with NFs of other chains: the partition of each NF, and its
/// packets per launch. The plan may change because speeds have changed, in mode `scheduled`, or because chains came
/// or left. Then the stages take their new partitions between two launches. After a device loss they get the partitions
/// current at its return.
///
/// Call order: create() -> bounds_of() for each stage created -> add() -> start() -> look() and bounds_on() by one
/// thread -> stop(). Must outlive the stages.
class GpuSharing {
 public:
  struct Nf {
    std::string name;
    /// Cost of the NF for packets of `packet_bytes`; nullopt: not measured. Any thread.
    std::function<std::optional<share::NfCost>(std::uint32_t packet_bytes)> cost;
    double latency_limit_ns = 1e6;
    std::uint32_t group_size = 64;    ///< of its kernel
    std::uint32_t stages = 1;         ///< number sharing its partition: one per shard
    std::uint32_t least_packets = 1;  ///< minimum capacity of a launch, for any partition: a unit
    std::uint32_t max_packets = UINT32_MAX;
    bool is_elsewhere = false;  ///< in a separate process, which keeps to the partition itself
    /// Number of waiting packets that shows its partition to be too small: so many never wait just for the next launch.
    std::uint64_t backlog_packets = UINT64_MAX;
  };
  using Traffic = share::TrafficSample;
  struct Allocation {
    std::string nf;
    std::uint32_t units = 0;           ///< compute units, or parts of another kind
    std::uint32_t launch_packets = 0;  ///< at most, per stage
    bool is_taken = true;              ///< the NF uses it now; a separate process reports it itself
  };

  /// `packet_bytes`: the expected average. Errors: FailedPrecondition in mode `scheduled` for an unmeasured NF; as
  /// share::PartitionPlan::join() and Device::divide(); Unimplemented for a mode or partitions not supported by the
  /// device.
  static Result<std::unique_ptr<GpuSharing>> create(device::Device& device, chain::SharingOptions const& options,
                                                    SharedPartitions partitions, std::vector<Nf> nfs,
                                                    std::uint32_t packet_bytes);
  GpuSharing(GpuSharing const&) = delete;
  GpuSharing& operator=(GpuSharing const&) = delete;

  /// Initial bounds for each stage of NF number `nf`.
  kernel::LaunchBounds bounds_of(std::size_t nf) const { return first_bounds_[nf]; }
  /// A stage of NF number `nf`; it outlives start() .. stop().
  void add(std::size_t nf, DeviceStage& stage) { stages_[nf].push_back(&stage); }
  /// The partition to be assigned to NF number `nf`, which is in a separate process; it outlives start() .. stop().
  void add(std::size_t nf, ProcessPart& part);
  /// Whether partitions may change while packets run.
  bool has_changes() const { return options_.mode == share::Mode::kScheduled || !is_alone(); }
  /// Time between two look() calls without failures.
  std::chrono::milliseconds period() const;
  static constexpr std::chrono::hours kNever{24};
  /// Call before look(). `traffic`: the current traffic; any thread. `returns`: a lost device will be restored by its
  /// monitor; otherwise the loss ends the sharing.
  void start(std::function<Traffic()> traffic, bool returns);
  /// Has stages take changed partitions, until `pause` ends, and returns the time until the next look(). Failures are
  /// retried at growing intervals, and logged once.
  std::chrono::milliseconds look(Pause& pause);
  /// Bounds of launches of each NF on a restored device: its current partition, which the NFs have from here on.
  /// Errors: as Device::divide(); FailedPrecondition if it is another device.
  Result<std::vector<kernel::LaunchBounds>> bounds_on(device::Device& device);
  /// Call after the last look(). Stages keep their partitions.
  void stop();

  /// "scheduled, in green contexts of 8 compute units". Any thread.
  std::string describe() const;
  /// "fw: 8 of 132 compute units, at most 2048 packets a launch". Any thread.
  std::string describe(Allocation const& part) const;
  std::vector<Allocation> allocations() const;
  /// Whether sharing has ended because the device was lost for good. Any thread.
  bool is_over() const { return !returns_ && is_lost(); }
  /// How often partitions were reassigned. Any thread.
  std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

 private:
  using Partitions = std::vector<std::shared_ptr<device::Partition>>;  ///< of each NF, or null
  GpuSharing(device::DeviceInfo info, chain::SharingOptions const& options, SharedPartitions partitions,
             std::vector<Nf> nfs, std::uint32_t packet_bytes);
  Status resolve_shape(device::Device& device);
  Status resolve_turns(device::Device& device);
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
  bool is_alone() const { return partitions_.plans == nullptr && !partitions_.given; }
  Result<std::vector<share::Part>> parts_now();

  device::DeviceInfo info_;
  chain::SharingOptions options_;
  SharedPartitions partitions_;
  std::vector<Nf> nfs_;
  share::GpuShape shape_;
  std::uint32_t units_ = 0;  ///< shared compute units
  bool takes_turns_ = false;
  device::StreamSerializer serializer_;
  std::vector<kernel::LaunchBounds> first_bounds_;  ///< of each NF, until start()
  std::vector<std::vector<DeviceStage*>> stages_;   ///< of each NF
  std::vector<ProcessPart*> elsewhere_;             ///< of each NF, or null
  std::atomic<bool> returns_{false};
  int failures_ = 0;                ///< in a row
  std::vector<share::Part> told_;   ///< last reported to the assigner of the parts
  mutable std::mutex parts_mutex_;  ///< guards the next two, for other threads than look()'s
  std::vector<share::Part> parts_;  ///< current ones of the stages
  bool is_mixed_ = false;           ///< some stages have parts_, others parts not handed out to all
  std::mutex traffic_mutex_;        ///< guards the next three, also for other chains' threads
  std::vector<std::optional<share::NfCost>> known_costs_;  ///< of each NF, the last known ones
  std::function<Traffic()> traffic_;                       ///< null while the chain does not run
  share::TrafficMeter meter_;
  std::atomic<std::uint64_t> changes_{0};
  std::shared_ptr<share::PartitionPlan> partition_plan_;
  std::unique_ptr<share::PartitionPlan::Member> member_;  ///< destroyed before all that it calls
};

}  // namespace catena::runtime
