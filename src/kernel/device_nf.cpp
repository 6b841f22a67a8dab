// SPDX-License-Identifier: Apache-2.0
#include "kernel/launch.hpp"

#include <catena/core/text.hpp>

#include "kernel/launch_support.hpp"

namespace catena::kernel {

Result<std::unique_ptr<DeviceNf>> DeviceNf::create(device::Device& device, KernelSpec spec, LaunchPlan const& plan,
                                                   std::span<const std::byte> state, SharedBuffer* shared) {
  std::unique_ptr<DeviceNf> nf(new DeviceNf());
  nf->device_ = &device;
  nf->spec_ = std::move(spec);
  nf->plan_ = plan;
  nf->shared_ = shared;
  if (nf->plan_.shared) {
    CATENA_RETURN_IF_ERROR(nf->load_transfers());
  }
  CATENA_ASSIGN_OR_RETURN(nf->program_, build(device, nf->spec_, plan));
  CATENA_ASSIGN_OR_RETURN(nf->kernel_, nf->program_->kernel(nf->spec_.name));
  if (!state.empty()) {
    CATENA_ASSIGN_OR_RETURN(nf->state_, device.allocate(state.size()));
    CATENA_ASSIGN_OR_RETURN(const auto stream, device.create_stream());
    CATENA_RETURN_IF_ERROR(stream->copy_to_device(*nf->state_, 0, state));
    CATENA_ASSIGN_OR_RETURN(const auto done, stream->record());
    CATENA_RETURN_IF_ERROR(stream->flush());
    CATENA_RETURN_IF_ERROR(
        done->wait(kSetUpLimit, concat("copying the state of ", nf->spec_.name, " to ", device.info().name)));
  }
  return nf;
}

Status DeviceNf::load_transfers() {
  if (shared_ == nullptr) {
    return absl::InvalidArgumentError(concat("kernel '", spec_.name, "': a shared step needs a shared buffer"));
  }
  SharedStep const& step = *plan_.shared;
  for (const TransferMethod route : {step.columns_in, step.columns_out, step.body_in, step.body_out}) {
    if (route == TransferMethod::kGather && shared_->mapped() == nullptr) {
      return absl::InvalidArgumentError(
          concat("kernel '", spec_.name, "': the packet pool is not mapped on ", device_->info().name));
    }
  }
  CATENA_ASSIGN_OR_RETURN(move_in_program_, build(*device_, transfer_source(plan_, true), "the transfer kernel"));
  CATENA_ASSIGN_OR_RETURN(move_in_, move_in_program_->kernel(kMoveIn));
  CATENA_ASSIGN_OR_RETURN(move_out_program_, build(*device_, transfer_source(plan_, false), "the transfer kernel"));
  CATENA_ASSIGN_OR_RETURN(move_out_, move_out_program_->kernel(kMoveOut));
  CATENA_ASSIGN_OR_RETURN(upload_program_, build(*device_, upload_source(), "the copying kernel"));
  CATENA_ASSIGN_OR_RETURN(upload_, upload_program_->kernel(kUpload));
  return absl::OkStatus();
}

}  // namespace catena::kernel
