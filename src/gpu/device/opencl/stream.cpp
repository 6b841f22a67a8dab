// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/opencl/stream.hpp"

#include "gpu/device/backend.hpp"
#include "gpu/device/opencl/command_buffer.hpp"
#include "gpu/device/opencl/event.hpp"
#include "gpu/device/opencl/memory.hpp"

namespace catena::device::opencl {

namespace {

cl_mem native(Buffer& buffer) { return static_cast<OpenClBuffer&>(buffer).native(); }

/// Where the rows of a host span begin.
constexpr std::size_t kStart[3] = {0, 0, 0};

}  // namespace

Result<std::unique_ptr<Stream>> OpenClDevice::create_stream(StreamOptions const& /*options*/) {
  CATENA_RETURN_IF_ERROR(failed());
  cl_int code = CL_SUCCESS;
  // a queue keeps the times of all its commands or of none: of all, so that record_timestamp() has them
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  Handle<cl_command_queue> queue(clCreateCommandQueueWithProperties(context(), native(), properties, &code));
  CATENA_RETURN_IF_ERROR(check(code, "clCreateCommandQueueWithProperties", __FILE__, __LINE__));
  return std::make_unique<OpenClStream>(*this, std::move(queue));
}

OpenClStream::~OpenClStream() {
  drain(*this, device_->health());
  if (!device_->failed().ok()) {
    static_cast<void>(queue_.release());  // releasing a queue may wait for its commands, which may never end
  }
}

Status OpenClStream::copy_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_RETURN_IF_ERROR(check_range("copy to device", target_offset, source.size(), target.size()));
  if (source.empty()) {
    return absl::OkStatus();
  }
  CATENA_CL_TRY_ON(*device_, clEnqueueWriteBuffer(queue_.get(), native(target), CL_FALSE, target_offset, source.size(),
                                                  source.data(), 0, nullptr, nullptr));
  return absl::OkStatus();
}

Status OpenClStream::copy_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_RETURN_IF_ERROR(check_range("copy to host", source_offset, target.size(), source.size()));
  if (target.empty()) {
    return absl::OkStatus();
  }
  CATENA_CL_TRY_ON(*device_, clEnqueueReadBuffer(queue_.get(), native(source), CL_FALSE, source_offset, target.size(),
                                                 target.data(), 0, nullptr, nullptr));
  return absl::OkStatus();
}

Status OpenClStream::copy_rows_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source,
                                         RowShape const& shape) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_RETURN_IF_ERROR(check_rows("copy rows to device", shape, source.size(), target_offset, target.size()));
  if (shape.rows == 0) {
    return absl::OkStatus();
  }
  const std::size_t region[3] = {shape.row_bytes, shape.rows, 1};
  const std::size_t first[3] = {target_offset, 0, 0};
  CATENA_CL_TRY_ON(
      *device_, clEnqueueWriteBufferRect(queue_.get(), native(target), CL_FALSE, first, kStart, region, shape.stride, 0,
                                         shape.stride, 0, source.data(), 0, nullptr, nullptr));
  return absl::OkStatus();
}

Status OpenClStream::copy_rows_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset,
                                       RowShape const& shape) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_RETURN_IF_ERROR(check_rows("copy rows to host", shape, target.size(), source_offset, source.size()));
  if (shape.rows == 0) {
    return absl::OkStatus();
  }
  const std::size_t region[3] = {shape.row_bytes, shape.rows, 1};
  const std::size_t first[3] = {source_offset, 0, 0};
  CATENA_CL_TRY_ON(
      *device_, clEnqueueReadBufferRect(queue_.get(), native(source), CL_FALSE, first, kStart, region, shape.stride, 0,
                                        shape.stride, 0, target.data(), 0, nullptr, nullptr));
  return absl::OkStatus();
}

Status OpenClStream::fill(Buffer& target, std::size_t offset, std::size_t bytes, std::uint8_t value) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_RETURN_IF_ERROR(check_range("fill", offset, bytes, target.size()));
  if (bytes == 0) {
    return absl::OkStatus();
  }
  CATENA_CL_TRY_ON(*device_, clEnqueueFillBuffer(queue_.get(), native(target), &value, sizeof value, offset, bytes, 0,
                                                 nullptr, nullptr));
  return absl::OkStatus();
}

Status OpenClStream::launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  CATENA_RETURN_IF_ERROR(check_shape(shape, device_->info()));
  return static_cast<OpenClKernel&>(kernel).enqueue(queue_.get(), shape, arguments);
}

Status OpenClStream::enqueue(CommandBuffer& commands) {
  CATENA_RETURN_IF_ERROR(device_->failed());
  return static_cast<OpenClCommandBuffer&>(commands).enqueue(queue_.get());
}

Status OpenClStream::finalize(CommandBuffer& commands) {
  static_cast<OpenClCommandBuffer&>(commands).finalize();
  return device_->failed();
}

Result<std::unique_ptr<Event>> OpenClStream::record_event(bool is_timestamp) {
  CATENA_ASSIGN_OR_RETURN(Handle<cl_event> event, enqueue_marker(*device_, queue_.get()));
  return std::make_unique<OpenClEvent>(*device_, std::move(event), is_timestamp);
}

Result<std::unique_ptr<Event>> OpenClStream::record() {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Event> event, record_event(false));
  // a queue that is not flushed need not start, and the event would never become ready
  CATENA_RETURN_IF_ERROR(flush());
  return event;
}

Status OpenClStream::wait_for(Event& event) {
  cl_event native = static_cast<OpenClEvent&>(event).native();
  CATENA_CL_TRY_ON(*device_, clEnqueueBarrierWithWaitList(queue_.get(), 1, &native, nullptr));
  return absl::OkStatus();
}

Status OpenClStream::flush() {
  CATENA_CL_TRY_ON(*device_, clFlush(queue_.get()));
  return absl::OkStatus();
}

}  // namespace catena::device::opencl
