// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "gpu/device/device.hpp"
#include "gpu/launch/launch.hpp"
#include "pipeline/sharing_nf.hpp"
#include "plan/sharing/partition_plan.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace catena::runtime {

/// Divides a device among the NFs of a chain: turns their parts in a partition plan into bounds of launches. The parts
/// are decided elsewhere. One thread at a time, unless stated otherwise; outlives all bounds.
class GpuPartitioner {
 public:
  /// `nfs`: outlive this.
  GpuPartitioner(device::DeviceInfo info, chain::SharingOptions const& options, std::span<const SharingNf> nfs);
  GpuPartitioner(GpuPartitioner const&) = delete;
  GpuPartitioner& operator=(GpuPartitioner const&) = delete;

  /// Finds out how the device can be divided; before all other calls. `is_alone`: no other chain shares it. Errors: as
  /// Device::divide(); ResourceExhausted if it has too few compute units for the NFs; Unimplemented for a mode or
  /// partitions not supported by the device.
  Status prepare(device::Device& device, bool is_alone);
  /// Bounds for each NF with these parts. Errors: as Device::divide().
  Result<std::vector<kernel::LaunchBounds>> bounds_for(device::Device& device, std::vector<share::Part> const& parts);

  // Any thread, after prepare().
  device::DeviceInfo const& info() const { return info_; }
  share::Mode mode() const { return options_.mode; }
  /// The units to be shared, and their multiples.
  share::GpuShape const& shape() const { return shape_; }
  /// Maximum packets per launch of a stage of NF number `nf`.
  std::uint32_t launch_packets(std::size_t nf, share::Share const& share) const;
  /// "scheduled, in green contexts of 8 compute units".
  std::string describe() const;
  /// "8 of 132 compute units".
  std::string describe(std::uint32_t units) const;

 private:
  using Partitions = std::vector<std::shared_ptr<device::Partition>>;  ///< of each NF, or null
  Status resolve_shape(device::Device& device, bool is_alone);
  Status resolve_turns(device::Device& device, bool is_alone);
  Result<Partitions> divide(device::Device& device, std::vector<share::Part> const& parts) const;
  kernel::LaunchBounds bounds(std::size_t nf, share::Share const& share,
                              std::shared_ptr<device::Partition> const& partition);
  bool are_all_elsewhere() const;

  device::DeviceInfo info_;
  chain::SharingOptions options_;
  std::span<const SharingNf> nfs_;
  share::GpuShape shape_;
  std::uint32_t units_ = 0;  ///< shared compute units
  bool takes_turns_ = false;
  device::StreamSerializer serializer_;
};

}  // namespace catena::runtime
