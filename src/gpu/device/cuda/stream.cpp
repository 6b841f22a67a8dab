// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/cuda/stream.hpp"

#include "gpu/device/backend.hpp"
#include "gpu/device/cuda/command_buffer.hpp"
#include "gpu/device/cuda/event.hpp"
#include "gpu/device/cuda/memory.hpp"
#include "gpu/device/cuda/program.hpp"

namespace catena::device::cuda {

namespace {

CUdeviceptr address(Buffer& buffer, std::size_t offset) { return static_cast<CudaBuffer&>(buffer).native() + offset; }

/// A 2-D copy of these rows that has no ends yet.
CUDA_MEMCPY2D rectangle(RowShape const& shape) {
  CUDA_MEMCPY2D copy{};
  copy.srcPitch = shape.stride;
  copy.dstPitch = shape.stride;
  copy.WidthInBytes = shape.row_bytes;
  copy.Height = shape.rows;
  return copy;
}

}  // namespace

Result<std::unique_ptr<Stream>> CudaDevice::create_stream(StreamOptions const& options) {
  CATENA_CUDA_ENTER(*this);
  int usual = 0;
  int urgent = 0;
  CATENA_CUDA_TRY_ON(*this, cuCtxGetStreamPriorityRange(&usual, &urgent));
  CUstream stream = nullptr;
  CATENA_CUDA_TRY_ON(*this,
                     cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, options.is_urgent ? urgent : usual));
  return std::make_unique<CudaStream>(*this, stream);
}

CudaStream::~CudaStream() {
  drain(*this, device_->health());
  if (!device_->failed().ok()) {
    return;
  }
  const ContextScope scope(*device_);
  device_->driver().cuStreamDestroy(stream_);
}

Status CudaStream::copy_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source) {
  CATENA_RETURN_IF_ERROR(check_range("copy to device", target_offset, source.size(), target.size()));
  CATENA_CUDA_ENTER(*device_);
  if (!source.empty()) {
    CATENA_CUDA_TRY_ON(*device_,
                       cuMemcpyHtoDAsync(address(target, target_offset), source.data(), source.size(), stream_));
  }
  return absl::OkStatus();
}

Status CudaStream::copy_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset) {
  CATENA_RETURN_IF_ERROR(check_range("copy to host", source_offset, target.size(), source.size()));
  CATENA_CUDA_ENTER(*device_);
  if (!target.empty()) {
    CATENA_CUDA_TRY_ON(*device_,
                       cuMemcpyDtoHAsync(target.data(), address(source, source_offset), target.size(), stream_));
  }
  return absl::OkStatus();
}

Status CudaStream::copy_rows_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source,
                                       RowShape const& shape) {
  CATENA_RETURN_IF_ERROR(check_rows("copy rows to device", shape, source.size(), target_offset, target.size()));
  CATENA_CUDA_ENTER(*device_);
  if (shape.rows != 0) {
    CUDA_MEMCPY2D copy = rectangle(shape);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = source.data();
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = address(target, target_offset);
    CATENA_CUDA_TRY_ON(*device_, cuMemcpy2DAsync(&copy, stream_));
  }
  return absl::OkStatus();
}

Status CudaStream::copy_rows_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset,
                                     RowShape const& shape) {
  CATENA_RETURN_IF_ERROR(check_rows("copy rows to host", shape, target.size(), source_offset, source.size()));
  CATENA_CUDA_ENTER(*device_);
  if (shape.rows != 0) {
    CUDA_MEMCPY2D copy = rectangle(shape);
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = address(source, source_offset);
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = target.data();
    CATENA_CUDA_TRY_ON(*device_, cuMemcpy2DAsync(&copy, stream_));
  }
  return absl::OkStatus();
}

Status CudaStream::fill(Buffer& target, std::size_t offset, std::size_t bytes, std::uint8_t value) {
  CATENA_RETURN_IF_ERROR(check_range("fill", offset, bytes, target.size()));
  CATENA_CUDA_ENTER(*device_);
  if (bytes != 0) {
    CATENA_CUDA_TRY_ON(*device_, cuMemsetD8Async(address(target, offset), value, bytes, stream_));
  }
  return absl::OkStatus();
}

Status CudaStream::launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) {
  CATENA_RETURN_IF_ERROR(check_shape(shape, device_->info()));
  CATENA_CUDA_ENTER(*device_);
  return static_cast<CudaKernel&>(kernel).enqueue(stream_, shape, arguments);
}

Status CudaStream::enqueue(CommandBuffer& commands) {
  CATENA_CUDA_ENTER(*device_);
  return static_cast<CudaCommandBuffer&>(commands).enqueue(stream_);
}

Status CudaStream::finalize(CommandBuffer& commands) {
  CATENA_CUDA_ENTER(*device_);
  return static_cast<CudaCommandBuffer&>(commands).finalize(stream_);
}

Result<std::unique_ptr<Event>> CudaStream::record_event(bool keeps_time) {
  CATENA_CUDA_ENTER(*device_);
  CATENA_ASSIGN_OR_RETURN(CUevent event, device_->take_event(keeps_time));
  auto owned = std::make_unique<CudaEvent>(*device_, event, keeps_time);
  CATENA_CUDA_TRY_ON(*device_, cuEventRecord(event, stream_));
  return owned;
}

Status CudaStream::wait_for(Event& event) {
  CATENA_CUDA_ENTER(*device_);
  CATENA_CUDA_TRY_ON(*device_, cuStreamWaitEvent(stream_, static_cast<CudaEvent&>(event).native(), 0));
  return absl::OkStatus();
}

Status CudaStream::flush() {
  // CUDA hands work to the device as it is enqueued
  return device_->failed();
}

}  // namespace catena::device::cuda
