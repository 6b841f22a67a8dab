// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/cuda/command_buffer.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"
#include "gpu/device/cuda/partition.hpp"
#include "gpu/device/cuda/program.hpp"

namespace catena::device::cuda {

Result<std::unique_ptr<CommandBuffer>> CudaDevice::create_command_buffer(Partition* partition) {
  CATENA_CUDA_ENTER(*this);
  CUgraph graph = nullptr;
  CATENA_CUDA_TRY_ON(*this, cuGraphCreate(&graph, 0));
  return std::make_unique<CudaCommandBuffer>(
      *this, graph, partition != nullptr ? static_cast<CudaPartition*>(partition)->context() : context_);
}

CudaCommandBuffer::~CudaCommandBuffer() {
  if (!device_->failed().ok()) {
    return;
  }
  const ContextScope scope(*device_);
  if (executable_ != nullptr) {
    device_->driver().cuGraphExecDestroy(executable_);
  }
  device_->driver().cuGraphDestroy(graph_);
}

Status CudaCommandBuffer::launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) {
  CATENA_RETURN_IF_ERROR(check_shape(shape, device_->info()));
  CATENA_RETURN_IF_ERROR(check_recording("launch"));
  CATENA_RETURN_IF_ERROR(device_->failed());
  // a kernel node keeps to the compute units of the context that is current when it is added
  const ContextScope scope(*device_, context_);
  CATENA_RETURN_IF_ERROR(scope.status());
  CATENA_ASSIGN_OR_RETURN(last_, static_cast<CudaKernel&>(kernel).add_to(graph_, last_, shape, arguments));
  return absl::OkStatus();
}

Result<Event*> CudaCommandBuffer::record_timestamp() {
  CATENA_RETURN_IF_ERROR(check_recording("record_timestamp"));
  CATENA_CUDA_ENTER(*device_);
  CATENA_ASSIGN_OR_RETURN(CUevent event, device_->take_event(true));
  timestamps_.push_back(std::make_unique<CudaEvent>(*device_, event, true));
  CUgraphNode node = nullptr;
  CATENA_CUDA_TRY_ON(*device_, cuGraphAddEventRecordNode(&node, graph_, &last_, last_ == nullptr ? 0 : 1, event));
  last_ = node;
  return timestamps_.back().get();
}

Status CudaCommandBuffer::check_recording(std::string_view what) const {
  return executable_ == nullptr
             ? absl::OkStatus()
             : absl::FailedPreconditionError(concat(what, ": the command buffer was finalized or enqueued"));
}

Status CudaCommandBuffer::instantiate() {
  if (executable_ == nullptr) {
    CATENA_CUDA_TRY_ON(*device_, cuGraphInstantiate(&executable_, graph_, 0));
  }
  return absl::OkStatus();
}

Status CudaCommandBuffer::finalize(CUstream stream) {
  CATENA_RETURN_IF_ERROR(instantiate());
  CATENA_CUDA_TRY_ON(*device_, cuGraphUpload(executable_, stream));
  return absl::OkStatus();
}

Status CudaCommandBuffer::enqueue(CUstream stream) {
  CATENA_RETURN_IF_ERROR(instantiate());
  CATENA_CUDA_TRY_ON(*device_, cuGraphLaunch(executable_, stream));
  return absl::OkStatus();
}

}  // namespace catena::device::cuda
