// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/opencl/command_buffer.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"

namespace catena::device::opencl {

Result<std::unique_ptr<CommandBuffer>> OpenClDevice::create_command_buffer(Partition* /*partition*/) {
  CATENA_RETURN_IF_ERROR(failed());
  return std::make_unique<OpenClCommandBuffer>(*this);
}

Result<std::vector<std::unique_ptr<Partition>>> OpenClDevice::divide(std::span<const std::uint32_t> /*compute_units*/) {
  CATENA_RETURN_IF_ERROR(failed());
  return absl::UnimplementedError(concat(info().name, " cannot be divided: only CUDA GPUs can"));
}

Status OpenClCommandBuffer::launch(Kernel& kernel, LaunchShape const& shape,
                                   std::span<const KernelArgument> arguments) {
  CATENA_RETURN_IF_ERROR(check_shape(shape, device_->info()));
  CATENA_RETURN_IF_ERROR(check_recording("launch"));
  Entry entry{static_cast<OpenClKernel*>(&kernel), nullptr, shape, {}, {arguments.begin(), arguments.end()}};
  CATENA_RETURN_IF_ERROR(entry.kernel->check(shape, arguments));
  for (KernelArgument& argument : entry.arguments) {
    if (auto* bytes = std::get_if<std::span<const std::byte>>(&argument); bytes != nullptr) {
      *bytes = entry.bytes.emplace_back(bytes->begin(), bytes->end());
    }
  }
  entries_.push_back(std::move(entry));
  return absl::OkStatus();
}

Result<Event*> OpenClCommandBuffer::record_timestamp() {
  CATENA_RETURN_IF_ERROR(check_recording("record_timestamp"));
  timestamps_.push_back(std::make_unique<OpenClEvent>(*device_, Handle<cl_event>(), true));
  entries_.push_back({nullptr, timestamps_.back().get(), {}, {}, {}});
  return timestamps_.back().get();
}

Status OpenClCommandBuffer::check_recording(std::string_view what) const {
  return is_final_ ? absl::FailedPreconditionError(concat(what, ": the command buffer was finalized or enqueued"))
                   : absl::OkStatus();
}

Status OpenClCommandBuffer::enqueue(cl_command_queue queue) {
  is_final_ = true;
  for (Entry const& entry : entries_) {
    if (entry.kernel != nullptr) {
      CATENA_RETURN_IF_ERROR(entry.kernel->enqueue(queue, entry.shape, entry.arguments));
    } else {
      CATENA_ASSIGN_OR_RETURN(Handle<cl_event> event, enqueue_marker(*device_, queue));
      entry.timestamp->set(std::move(event));
    }
  }
  return absl::OkStatus();
}

}  // namespace catena::device::opencl
