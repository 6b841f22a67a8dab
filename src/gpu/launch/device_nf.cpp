// SPDX-License-Identifier: Apache-2.0
#include "gpu/launch/launch.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>

#include "gpu/copy/layout.hpp"
#include "gpu/launch/adapt.hpp"

namespace catena::kernel {

Result<std::unique_ptr<DeviceNf>> DeviceNf::create(device::Device& device, KernelSpec spec,
                                                   copy::LaunchPlan const& plan, std::span<const std::byte> state,
                                                   copy::SharedBuffer* shared, Groups groups) {
  std::unique_ptr<DeviceNf> nf(new DeviceNf());
  nf->device_ = &device;
  nf->spec_ = std::move(spec);
  nf->groups_ = groups;
  nf->plan_ = plan;
  nf->shared_ = shared;
  if (nf->plan_.shared) {
    if (shared == nullptr) {
      return absl::InvalidArgumentError(concat("kernel '", nf->spec_.name, "': a shared step needs a shared buffer"));
    }
    CATENA_ASSIGN_OR_RETURN(nf->moves_, copy::TransferKernels::load(device, plan, *shared, nf->spec_.name));
  }
  CATENA_ASSIGN_OR_RETURN(nf->program_, build(device, nf->spec_, plan, groups));
  CATENA_ASSIGN_OR_RETURN(nf->kernel_, nf->program_->kernel(nf->spec_.name));
  if (!state.empty()) {
    CATENA_ASSIGN_OR_RETURN(nf->state_, device.allocate(state.size()));
    CATENA_ASSIGN_OR_RETURN(const auto stream, device.create_stream());
    CATENA_RETURN_IF_ERROR(stream->copy_to_device(*nf->state_, 0, state));
    CATENA_ASSIGN_OR_RETURN(const auto done, stream->record());
    CATENA_RETURN_IF_ERROR(stream->flush());
    CATENA_RETURN_IF_ERROR(
        done->wait(copy::kSetUpLimit, concat("copying the state of ", nf->spec_.name, " to ", device.info().name)));
  }
  return nf;
}

Status DeviceNf::launch(device::CommandRecorder& target, copy::KernelArguments const& site, device::Buffer* spill,
                        std::uint32_t packets, std::uint32_t work_packets, std::uint32_t max_groups) const {
  LaunchParams params = site.params;
  params.count = packets;
  params.state_bytes = state_ ? state_->size() : 0;
  params.spill_bytes = spill != nullptr ? spill->size() : 0;
  params.local_bytes = spec_.local_bytes;
  const std::array<device::KernelArgument, 7> arguments{site.batch,
                                                        site.out,
                                                        state_.get(),
                                                        spill,
                                                        plan_.shared ? &shared_->buffer() : nullptr,
                                                        std::as_bytes(std::span(&params, 1)),
                                                        device::BufferSizes{}};
  const std::uint64_t work_items = std::uint64_t{work_packets} * spec_.lanes;
  auto groups = std::max(1U, static_cast<std::uint32_t>((work_items + spec_.group_size - 1) / spec_.group_size));
  if (max_groups != 0) {
    groups = std::min(groups, max_groups);
  }
  const device::LaunchShape shape{groups, spec_.group_size, spec_.local_bytes};
  return target.launch(*kernel_, shape, arguments);
}

Status DeviceNf::wipe_state() {
  if (!state_) {
    return absl::OkStatus();
  }
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_ASSIGN_OR_RETURN(const auto stream, device_->create_stream());
  CATENA_RETURN_IF_ERROR(stream->fill(*state_, 0, state_->size(), 0));
  CATENA_ASSIGN_OR_RETURN(const auto done, stream->record());
  CATENA_RETURN_IF_ERROR(stream->flush());
  return done->wait(copy::kSetUpLimit, concat("wiping the state of ", spec_.name, " on ", device_->info().name));
}

}  // namespace catena::kernel
