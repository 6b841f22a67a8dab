// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"
#include "gpu/launch/launch.hpp"
#include "pipeline/gpu_partitioner.hpp"
#include "pipeline/nf_demand_meter.hpp"
#include "pipeline/nf_parts.hpp"
#include "pipeline/part_source.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/run_options.hpp"
#include "pipeline/sharing_nf.hpp"
#include "plan/sharing/traffic.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace catena::runtime {

/// GPU sharing of a chain's NFs, among themselves and with NFs of other chains: the partition of each NF, and its
/// packets per launch. The plan may change because speeds have changed, in mode `scheduled`, or because chains came
/// or left. Then the stages take their new partitions between two launches. After a device loss they get the partitions
/// current at its return.
///
/// Call order: create() -> bounds_of() for each stage created -> add() -> start() -> look() and bounds_on() by one
/// thread -> stop(). Must outlive the stages.
class GpuSharing {
 public:
  using Nf = SharingNf;
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
                                                    SharedPartitions const& partitions, std::vector<Nf> nfs,
                                                    std::uint32_t packet_bytes);
  GpuSharing(GpuSharing const&) = delete;
  GpuSharing& operator=(GpuSharing const&) = delete;

  /// Initial bounds for each stage of NF number `nf`.
  kernel::LaunchBounds bounds_of(std::size_t nf) const { return first_bounds_[nf]; }
  /// A stage of NF number `nf`; it outlives start() .. stop().
  void add(std::size_t nf, DeviceStage& stage) { parts_.add(nf, stage); }
  /// The partition to be assigned to NF number `nf`, which is in a separate process; it outlives start() .. stop().
  void add(std::size_t nf, ProcessPart& part) { parts_.add(nf, part); }
  /// Whether partitions may change while packets run.
  bool has_changes() const { return partitioner_.mode() == share::Mode::kScheduled || !source_.is_alone(); }
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
  void stop() { demands_.stop(); }

  /// "scheduled, in green contexts of 8 compute units". Any thread.
  std::string describe() const { return partitioner_.describe(); }
  /// "fw: 8 of 132 compute units, at most 2048 packets a launch". Any thread.
  std::string describe(Allocation const& part) const;
  std::vector<Allocation> allocations() const;
  /// Whether sharing has ended because the device was lost for good. Any thread.
  bool is_over() const { return !returns_ && parts_.is_lost(); }
  /// How often partitions were reassigned. Any thread.
  std::uint64_t changes() const { return parts_.changes(); }

 private:
  GpuSharing(device::DeviceInfo info, chain::SharingOptions const& options, SharedPartitions const& partitions,
             std::vector<Nf> nfs, std::uint32_t packet_bytes);
  Status follow(Pause& pause);

  std::vector<Nf> nfs_;
  GpuPartitioner partitioner_;
  NfDemandMeter demands_;
  NfParts parts_;
  std::vector<kernel::LaunchBounds> first_bounds_;  ///< of each NF, until start()
  std::atomic<bool> returns_{false};
  int failures_ = 0;   ///< in a row
  PartSource source_;  ///< destroyed before all that it calls
};

}  // namespace catena::runtime
