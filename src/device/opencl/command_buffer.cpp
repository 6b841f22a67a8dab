// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/command_buffer.hpp"

#include "device/backend.hpp"

namespace catena::device::opencl {

Result<std::unique_ptr<CommandBuffer>> OpenClDevice::create_command_buffer() {
  CATENA_RETURN_IF_ERROR(failed());
  return std::make_unique<OpenClCommandBuffer>(*this);
}

Status OpenClCommandBuffer::launch(Kernel& kernel, LaunchShape const& shape,
                                   std::span<const KernelArgument> arguments) {
  CATENA_RETURN_IF_ERROR(check_shape(shape, device_->info()));
  if (is_final_) {
    return absl::FailedPreconditionError("launch: the command buffer was finalized or enqueued");
  }
  Entry entry{static_cast<OpenClKernel*>(&kernel), shape, {}, {arguments.begin(), arguments.end()}};
  CATENA_RETURN_IF_ERROR(entry.kernel->check(shape, arguments));
  for (KernelArgument& argument : entry.arguments) {
    if (auto* bytes = std::get_if<std::span<const std::byte>>(&argument); bytes != nullptr) {
      *bytes = entry.bytes.emplace_back(bytes->begin(), bytes->end());
    }
  }
  entries_.push_back(std::move(entry));
  return absl::OkStatus();
}

Status OpenClCommandBuffer::enqueue(cl_command_queue queue) {
  is_final_ = true;
  for (Entry const& entry : entries_) {
    CATENA_RETURN_IF_ERROR(entry.kernel->enqueue(queue, entry.shape, entry.arguments));
  }
  return absl::OkStatus();
}

}  // namespace catena::device::opencl
