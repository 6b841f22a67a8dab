// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"
#include "pipeline/run_options.hpp"
#include "plan/sharing/partition_plan.hpp"

#include <catena/core/status.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace catena::runtime {

/// Where the parts of a chain's NFs come from: the partition plan of the device, common to all chains or of this chain
/// alone; or another process, by GivenParts. Call order: join() -> the rest. One thread at a time, unless stated
/// otherwise.
class PartSource {
 public:
  PartSource(SharedPartitions const& partitions, share::Mode mode, device::DeviceInfo const& device);
  PartSource(PartSource const&) = delete;
  PartSource& operator=(PartSource const&) = delete;

  /// Whether this chain divides the device among its own NFs only. Any thread.
  bool is_alone() const { return is_alone_; }
  /// Whether another process assigns the parts. Any thread.
  bool is_given() const { return given_.has_value(); }
  /// Adds the chain's NFs to the plan. `demands`: called until leave() or the end of this, also by threads of other
  /// chains; not called if is_given(). Errors: as share::PartitionPlan::join().
  Status join(share::GpuShape const& gpu, share::PartitionPlan::Demands demands);
  /// Lets the plan adapt to traffic. Errors: as share::PartitionPlan::look(); parts stay.
  Status look() { return is_given() ? absl::OkStatus() : plan_->look(); }
  /// The part to be used by each NF now. InvalidArgument if another process assigns a part outside of the device.
  Result<std::vector<share::Part>> parts() const;
  /// Reports the parts in use to the process assigning them, if there is one, and after changes only.
  void report(std::vector<share::Part> used);
  /// The chain's NFs have no parts from here on; no parts() follows.
  void leave() { member_.reset(); }

 private:
  bool is_alone_;
  std::optional<GivenParts> given_;
  std::shared_ptr<share::PartitionPlan> plan_;
  share::GpuShape gpu_;
  std::vector<share::Part> reported_;
  std::unique_ptr<share::PartitionPlan::Member> member_;  ///< null if is_given()
};

}  // namespace catena::runtime
