// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "device/device.hpp"
#include "kernel/launch.hpp"
#include "runtime/device_side.hpp"
#include "runtime/device_stage.hpp"
#include "runtime/process_stage.hpp"
#include "share/division.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace catena::runtime {

/// A part as it is told to the process of an NF.
nf_process::GpuPart as_given(share::Part const& part);

/// How the NFs of a chain share their GPU, among themselves and with those of other chains: which part of it each has,
/// and how many packets a launch. Where the division has other parts for them, because in mode `scheduled` speeds have
/// changed or because chains came or left, the stages take those between two launches.
///
/// Call order: create() -> bounds_of() for each stage that is made -> add() -> start() -> stop(). Must outlive the
/// stages, whose launches keep to parts of it, and not outlive their device.
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
  };
  /// What runs now. Any thread.
  struct Traffic {
    std::vector<std::uint64_t> packets;  ///< that came to each NF so far
    std::uint32_t packet_bytes = 0;      ///< on average
  };
  struct Allocation {
    std::string nf;
    std::uint32_t units = 0;           ///< compute units; where parts are none of those, so many of what there is
    std::uint32_t launch_packets = 0;  ///< at most, of each of its stages
    bool is_taken = true;              ///< the NF has it; one elsewhere says so itself
  };

  /// `device`: kept where an NF is not elsewhere. `packet_bytes`: that are expected on average. Errors:
  /// FailedPrecondition in mode `scheduled` for an NF that was not measured; as share::Division::join() and
  /// Device::divide(); Unimplemented for a mode or parts that the device does not have.
  static Result<std::unique_ptr<GpuSharing>> create(std::shared_ptr<device::Device> device,
                                                    chain::SharingOptions const& options, std::vector<Nf> nfs,
                                                    std::uint32_t packet_bytes);
  ~GpuSharing() { stop(); }
  GpuSharing(GpuSharing const&) = delete;
  GpuSharing& operator=(GpuSharing const&) = delete;

  /// Of each stage of NF number `nf`, at first.
  kernel::LaunchBounds bounds_of(std::size_t nf);
  /// A stage of NF number `nf`, whose kernel `side` has as that of NF `position` of the chain; both outlive start() ..
  /// stop().
  void add(std::size_t nf, DeviceStage& stage, DeviceSide& side, std::size_t position);
  /// Where NF number `nf`, which is elsewhere, is told its part; it outlives start() .. stop().
  void add(std::size_t nf, ProcessPart& part);
  /// Begins to look after the parts, in a thread of its own, where the mode asks for that.
  void start(std::function<Traffic()> traffic);
  /// Ends that. Stages keep what they have.
  void stop();

  /// "scheduled, in green contexts of 8 compute units". Any thread.
  std::string describe() const;
  /// "fw: 8 of 132 compute units, at most 2048 packets a launch". Any thread.
  std::string describe(Allocation const& part) const;
  std::vector<Allocation> allocations() const;
  /// Whether nothing is shared any more, because the device was lost: stages have all of the next one. Any thread.
  bool is_over() const;
  /// How often parts were handed out anew. Any thread.
  std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

 private:
  struct Shared {
    DeviceStage* stage;
    DeviceSide* side;
    std::size_t position;
  };
  GpuSharing(std::shared_ptr<device::Device> device, chain::SharingOptions const& options, std::vector<Nf> nfs,
             std::uint32_t packet_bytes);
  Status settle_shape();
  Result<std::vector<share::NfDemand>> demands();
  Result<std::vector<std::shared_ptr<device::Partition>>> divide(std::vector<share::Part> const& parts) const;
  std::uint32_t launch_packets(std::size_t nf, share::Share const& share) const;
  kernel::LaunchBounds bounds(std::size_t nf, share::Share const& share, device::Partition* partition);
  void watch();
  Result<bool> follow();
  Result<bool> hand_out(std::vector<share::Part> const& parts);
  bool sleep(std::chrono::microseconds time);
  bool are_all_elsewhere() const;
  bool is_alone() const { return options_.division == nullptr && !options_.given; }
  Result<std::vector<share::Part>> parts_now();

  std::shared_ptr<device::Device> device_;  ///< null: all NFs are elsewhere
  device::DeviceInfo info_;
  chain::SharingOptions options_;
  std::vector<Nf> nfs_;
  share::GpuShape shape_;
  std::uint32_t units_ = 0;  ///< compute units that are shared
  kernel::Turns turns_;
  std::vector<std::shared_ptr<device::Partition>> partitions_;  ///< of each NF, or null
  std::vector<std::vector<Shared>> stages_;                     ///< of each NF
  std::vector<ProcessPart*> elsewhere_;                         ///< of each NF, or null
  mutable std::mutex parts_mutex_;                              ///< for others who read it than the thread
  std::vector<share::Part> parts_;                              ///< that the stages have
  bool is_mixed_ = false;  ///< some stages have parts_, others such as could not be handed out to all
  std::vector<std::optional<share::NfCost>> known_costs_;  ///< of each NF, the last that were
  std::mutex traffic_mutex_;                               ///< of what follows; other chains' threads ask, too
  std::function<Traffic()> traffic_;
  std::uint32_t packet_bytes_ = 0;
  Traffic last_;
  std::chrono::steady_clock::time_point last_at_;
  std::atomic<std::uint64_t> changes_{0};
  std::mutex mutex_;
  std::condition_variable stopping_changed_;
  bool is_stopping_ = false;
  std::thread thread_;
  std::shared_ptr<share::Division> division_;
  std::unique_ptr<share::Division::Member> member_;  ///< gone before what it asks
};

}  // namespace catena::runtime
