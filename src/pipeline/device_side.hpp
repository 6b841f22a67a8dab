// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/planning.hpp"
#include "gpu/copy/shared_buffer.hpp"
#include "gpu/device/device.hpp"
#include "gpu/launch/launch.hpp"
#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "pipeline/device_use.hpp"
#include "pipeline/run_options.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace catena::runtime {

/// The options, with the device's costs if profiles are kept.
chain::SyncOptions sync_for(RunOptions const& options, device::DeviceInfo const& info);

/// A device as used by a chain: the plan, the twin of the packet pool, and kernel and state of each NF placed on it.
class DeviceSide {
 public:
  /// Creates all of it on `device`, which others may use too. `nfs`: the chain's, in its order. A lost device keeps
  /// `pool`. Errors: as chain::plan_input(), chain::add_nf(), plan::make_plan(), SharedBuffer and DeviceNf.
  static Result<std::unique_ptr<DeviceSide>> create(std::shared_ptr<device::Device> device,
                                                    chain::ChainConfig const& config, RunOptions const& options,
                                                    std::span<nf::Instance* const> nfs,
                                                    std::shared_ptr<memory::PacketPool> const& pool);

  device::Device& device() const { return *device_; }
  plan::Plan const& plan() const { return *plan_; }
  /// Origin of the plan's costs, for people.
  std::string const& costs_from() const { return costs_from_; }
  /// Of NF number `nf`; null: the NF is on the CPU.
  kernel::DeviceNf* kernel_of(std::size_t nf) const { return kernels_[nf].get(); }
  /// Fields whose newest values are only in the shared buffer when packets reach NF number `nf`.
  packet::FieldSet only_on_device(std::size_t nf) const { return only_on_device_[nf]; }
  /// Whether the chain still uses the device.
  DeviceUse& use() { return use_; }

 private:
  explicit DeviceSide(std::shared_ptr<device::Device> device) : device_(std::move(device)) {}
  Status load(chain::ChainConfig const& config, chain::SyncOptions const& options, std::span<nf::Instance* const> nfs,
              std::shared_ptr<memory::PacketPool> const& pool);

  std::shared_ptr<device::Device> device_;
  kernel::Groups groups_ = kernel::Groups::kAsNeeded;
  std::unique_ptr<copy::SharedBuffer> shared_;
  std::optional<plan::Plan> plan_;
  std::string costs_from_;
  std::vector<packet::FieldSet> only_on_device_;
  std::vector<std::unique_ptr<kernel::DeviceNf>> kernels_;
  DeviceUse use_;
};

}  // namespace catena::runtime
