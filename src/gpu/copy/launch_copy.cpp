// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/launch_copy.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/slot.hpp>

#include <cstring>
#include <utility>

#include "gpu/copy/direct_copy.hpp"
#include "gpu/copy/layout.hpp"
#include "gpu/copy/shared_copy.hpp"
#include "gpu/program/program.hpp"

namespace catena::copy {

Result<std::unique_ptr<TransferKernels>> TransferKernels::load(device::Device& device, LaunchPlan const& plan,
                                                               SharedBuffer const& shared, std::string_view name) {
  SharedStep const& step = *plan.shared;
  for (const TransferMethod route : {step.columns_in, step.columns_out, step.body_in, step.body_out}) {
    if (needs_mapped_pool(route) && shared.mapped() == nullptr) {
      return absl::InvalidArgumentError(
          concat("kernel '", name, "': the packet pool is not mapped on ", device.info().name));
    }
  }
  std::unique_ptr<TransferKernels> kernels(new TransferKernels());
  const auto load = [&device](device::ProgramSource const& source, std::string_view what, std::string_view kernel_name,
                              std::unique_ptr<device::Program>& program, device::Kernel*& kernel) -> Status {
    CATENA_ASSIGN_OR_RETURN(program, program::build(device, source, what));
    CATENA_ASSIGN_OR_RETURN(kernel, program->kernel(kernel_name));
    return absl::OkStatus();
  };
  CATENA_RETURN_IF_ERROR(
      load(transfer_source(plan, true), "the transfer kernel", kMoveIn, kernels->move_in_program_, kernels->move_in_));
  CATENA_RETURN_IF_ERROR(load(transfer_source(plan, false), "the transfer kernel", kMoveOut, kernels->move_out_program_,
                              kernels->move_out_));
  CATENA_RETURN_IF_ERROR(
      load(upload_source(), "the copying kernel", kUpload, kernels->upload_program_, kernels->upload_));
  return kernels;
}

std::unique_ptr<LaunchCopy> LaunchCopy::make(CopyRequest const& request, std::uint32_t max_packets) {
  if (request.plan->shared) {
    return std::make_unique<SharedCopy>(request, max_packets);
  }
  return std::make_unique<DirectCopy>(request, max_packets);
}

Status LaunchCopy::allocate_memory(device::Stream& stream, std::size_t batch_bytes, std::size_t in_bytes,
                                   std::size_t out_bytes) {
  CATENA_ASSIGN_OR_RETURN(batch_, request_.device->allocate(batch_bytes));
  CATENA_ASSIGN_OR_RETURN(staging_, request_.device->allocate_pinned(in_bytes));
  CATENA_ASSIGN_OR_RETURN(staging_out_, request_.device->allocate_pinned(out_bytes));
  CATENA_RETURN_IF_ERROR(stream.fill(*batch_, 0, batch_bytes, kPoison));
  std::memset(staging_out_->bytes().data(), 0, staging_out_->bytes().size());
  return absl::OkStatus();
}

Status LaunchCopy::check_fits(std::size_t batch_bytes, std::size_t in_bytes, std::size_t out_bytes) const {
  if (batch_bytes > batch_->size() || in_bytes > staging_->bytes().size() || out_bytes > staging_out_->bytes().size()) {
    return absl::InternalError(concat("a launch of ", request_.spec->name, " needs ", batch_bytes, " bytes, ", in_bytes,
                                      " in and ", out_bytes, " out; it has ", batch_->size(), ", ",
                                      staging_->bytes().size(), " and ", staging_out_->bytes().size()));
  }
  return absl::OkStatus();
}

const std::byte* LaunchCopy::faulted_rows(std::uint32_t first_row) const {
  return faults().count == 0 ? nullptr : faults_ + sizeof(kernel::FaultReport) + first_row;
}

void LaunchCopy::mark_faulted(std::uint32_t row, std::uint64_t offset) {
  auto* report = reinterpret_cast<kernel::FaultReport*>(faults_);
  if (report->count++ == 0) {
    *report = {1, row, kernel::kAddressFrames, 0, offset, packet::kSlotBytes};
  }
  faults_[sizeof(kernel::FaultReport) + row] = std::byte{1};
}

TransferCounts LaunchCopy::take_transfers() { return std::exchange(transfers_, {}); }

}  // namespace catena::copy
