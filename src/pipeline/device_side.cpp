// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_side.hpp"

#include <catena/core/text.hpp>

#include <utility>

namespace catena::runtime {

chain::SyncOptions sync_for(RunOptions const& options, device::DeviceInfo const& info) {
  chain::SyncOptions sync = options.sync;
  if (options.profiles) {
    sync.profile = options.profiles->find(info);
  }
  return sync;
}

Result<std::unique_ptr<DeviceSide>> DeviceSide::create(std::shared_ptr<device::Device> device,
                                                       chain::ChainConfig const& config, RunOptions const& options,
                                                       std::span<nf::Instance* const> nfs,
                                                       std::shared_ptr<memory::PacketPool> const& pool) {
  std::unique_ptr<DeviceSide> side(new DeviceSide(std::move(device)));
  device::DeviceInfo const& info = side->device_->info();
  const chain::SyncOptions sync = sync_for(options, info);
  side->costs_from_ = chain::describe(sync.profile, info.backend);
  if (!sync.profile.measured.empty() && !sync.profile.is_of(info)) {
    side->costs_from_ += concat(" on another device, ", sync.profile.device);
  }
  const bool any_groups = options.sharing && options.sharing->parts == share::Parts::kBlocks;
  side->groups_ = any_groups ? kernel::Groups::kAny : kernel::Groups::kAsNeeded;
  CATENA_RETURN_IF_ERROR(side->load(config, sync, nfs, pool));
  return side;
}

Status DeviceSide::load(chain::ChainConfig const& config, chain::SyncOptions const& options,
                        std::span<nf::Instance* const> nfs, std::shared_ptr<memory::PacketPool> const& pool) {
  memory::Arena const& arena = pool->arena();
  CATENA_ASSIGN_OR_RETURN(plan::PlanInput input, chain::plan_input(config, options));
  CATENA_ASSIGN_OR_RETURN(shared_, copy::SharedBuffer::create(*device_, {arena.slot_bytes(), arena.fd()}, pool,
                                                              input.costs.has_pool_methods()));
  if (shared_->mapped() == nullptr) {
    input.costs.remove_pool_methods();
  }
  std::vector<std::optional<nf::KernelSide>> sides(nfs.size());
  for (std::size_t i = 0; i < nfs.size(); ++i) {
    CATENA_ASSIGN_OR_RETURN(sides[i], chain::add_nf(config.nfs[i], *nfs[i], input));
  }
  chain::add_ways(config, nfs, input);
  if (options.plan) {
    plan_ = options.plan;
  } else {
    CATENA_ASSIGN_OR_RETURN(plan_, plan::make_plan(input));
  }
  only_on_device_ = chain::only_on_device(input, *plan_);
  kernels_.resize(nfs.size());
  for (std::size_t i = 0; i < nfs.size(); ++i) {
    if (sides[i]) {
      const std::optional<copy::SharedStep> step = chain::shared_step(*plan_->nfs[i].step);
      CATENA_ASSIGN_OR_RETURN(kernels_[i],
                              kernel::DeviceNf::create(*device_, std::move(sides[i]->spec), nfs[i]->launch_plan(step),
                                                       sides[i]->state, shared_.get(), groups_));
    }
  }
  return absl::OkStatus();
}

}  // namespace catena::runtime
