// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/launch/launch.hpp"
#include "pipeline/device_stage.hpp"
#include "pipeline/gpu_partitioner.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/process_part.hpp"
#include "plan/sharing/partition_plan.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace catena::runtime {

/// A partition in the form for the process of an NF.
nf_process::GpuPart as_given(share::Part const& part);

/// The parts of a GPU used by the NFs of a chain: hands new ones to the stages, between two launches, and to NFs in
/// processes of their own, which take them in their own time. Call order: begin() -> add() -> the rest. One thread at a
/// time, unless stated otherwise.
class NfParts {
 public:
  /// For `nfs` NFs.
  explicit NfParts(std::size_t nfs) : stages_(nfs), elsewhere_(nfs) {}
  NfParts(NfParts const&) = delete;
  NfParts& operator=(NfParts const&) = delete;

  /// The parts with which all stages are created.
  void begin(std::vector<share::Part> parts) { set(std::move(parts), false); }
  /// A stage of NF number `nf`; it outlives the calls below.
  void add(std::size_t nf, DeviceStage& stage) { stages_[nf].push_back(&stage); }
  /// The partition to be assigned to NF number `nf`, in a separate process; it outlives the calls below.
  void add(std::size_t nf, ProcessPart& part);
  /// Whether hand_out() of `parts` has any effect: they are new, or the last one failed.
  bool is_due(std::vector<share::Part> const& parts) const { return parts != parts_ || (is_mixed_ && !is_lost()); }
  /// Hands parts to the stages, one after another, until `pause` ends. A stage without its device takes no part; it
  /// gets its part when the device returns. Errors: as GpuPartitioner::bounds_for() and DeviceStage::attach(), after
  /// which some stages have the new parts, and some the old ones.
  Status hand_out(std::vector<share::Part> const& parts, GpuPartitioner& partitioner, Pause& pause);
  /// Stages take `parts` with the device restored for them.
  void restore(std::vector<share::Part> const& parts);
  /// The parts used by all NFs; without SMs while stages differ or have lost their device.
  std::vector<share::Part> used() const;

  // Any thread.
  struct Held {
    share::Part part;
    bool is_used = true;  ///< by the NF, now; a separate process reports it itself
  };
  /// The last parts of each NF.
  std::vector<Held> held() const;
  /// Whether a stage has lost its device.
  bool is_lost() const;
  /// How often all stages have taken new parts.
  std::uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

 private:
  static Result<bool> hand_to(DeviceStage& stage, kernel::LaunchBounds const& bounds, Pause& pause);
  void give(std::vector<share::Part> const& parts);
  void set(std::vector<share::Part> parts, bool is_mixed);
  bool has_lost(std::size_t nf) const;

  std::vector<std::vector<DeviceStage*>> stages_;  ///< of each NF
  std::vector<ProcessPart*> elsewhere_;            ///< of each NF, or null
  mutable std::mutex mutex_;                       ///< guards the next two, for held()
  std::vector<share::Part> parts_;                 ///< current ones of the stages
  bool is_mixed_ = false;                          ///< some stages have parts_, others parts not handed out to all
  std::atomic<std::uint64_t> changes_{0};
};

}  // namespace catena::runtime
