// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/opencl/memory.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"

#include <algorithm>
#include <new>
#include <optional>

namespace catena::device::opencl {

namespace {

/// Drivers refuse buffers of no bytes; ours of size 0 still have an address.
constexpr std::size_t kLeastBytes = 16;
/// A page: what a CPU device copies from without a detour.
constexpr std::align_val_t kPage{4096};

/// Host memory for a device that computes on the CPU anyway.
class HostBuffer final : public PinnedBuffer {
 public:
  /// `native`: the driver's object for the memory, none where its kernels cannot work there.
  HostBuffer(OpenClDevice& device, std::byte* memory, std::size_t bytes, Handle<cl_mem> native)
      : device_(&device), memory_(memory), bytes_(bytes) {
    if (native) {
      window_.emplace(std::move(native), bytes);
    }
  }
  HostBuffer(HostBuffer const&) = delete;
  HostBuffer& operator=(HostBuffer const&) = delete;
  ~HostBuffer() override {
    window_.reset();
    if (device_->failed().ok()) {  // a lost device may still write to it
      ::operator delete(memory_, kPage);
    }
  }
  std::span<std::byte> bytes() override { return {memory_, bytes_}; }
  Buffer* window() override { return window_ ? &*window_ : nullptr; }

 private:
  OpenClDevice* device_;
  std::byte* memory_;
  std::size_t bytes_;
  std::optional<OpenClBuffer> window_;
};

/// Memory that the driver allocated where its device reaches it, mapped for as long as it lives.
class MappedBuffer final : public PinnedBuffer {
 public:
  MappedBuffer(OpenClDevice& device, Handle<cl_mem> memory, Handle<cl_command_queue> queue, void* mapped,
               std::size_t bytes)
      : device_(&device), memory_(std::move(memory)), queue_(std::move(queue)), mapped_(mapped), bytes_(bytes) {}
  MappedBuffer(MappedBuffer const&) = delete;
  MappedBuffer& operator=(MappedBuffer const&) = delete;
  ~MappedBuffer() override {
    if (!device_->failed().ok()) {
      static_cast<void>(memory_.release());
      static_cast<void>(queue_.release());
      return;
    }
    clEnqueueUnmapMemObject(queue_.get(), memory_.get(), mapped_, 0, nullptr, nullptr);
    clFinish(queue_.get());
  }
  std::span<std::byte> bytes() override { return {static_cast<std::byte*>(mapped_), bytes_}; }
  Buffer* window() override { return nullptr; }  // kernels may not touch what is mapped to the host

 private:
  OpenClDevice* device_;
  Handle<cl_mem> memory_;
  Handle<cl_command_queue> queue_;
  void* mapped_;
  std::size_t bytes_;
};

}  // namespace

Result<std::unique_ptr<Buffer>> OpenClDevice::allocate(std::size_t bytes) {
  CATENA_RETURN_IF_ERROR(failed());
  cl_int code = CL_SUCCESS;
  Handle<cl_mem> memory(clCreateBuffer(context(), CL_MEM_READ_WRITE, std::max(bytes, kLeastBytes), nullptr, &code));
  if (code != CL_SUCCESS) {
    const Status status = check(code, "clCreateBuffer", __FILE__, __LINE__);
    return Status(status.code(), concat(std::string(status.message()), ", asked for ", bytes, " bytes"));
  }
  return std::make_unique<OpenClBuffer>(std::move(memory), bytes);
}

Result<std::unique_ptr<PinnedBuffer>> OpenClDevice::allocate_pinned(std::size_t bytes) {
  CATENA_RETURN_IF_ERROR(failed());
  const std::size_t least = std::max(bytes, kLeastBytes);
  if (found_.info.is_cpu) {
    auto* memory = static_cast<std::byte*>(::operator new(least, kPage, std::nothrow));
    if (memory == nullptr) {
      return absl::ResourceExhaustedError(concat("no host memory for ", bytes, " bytes"));
    }
    cl_int code = CL_SUCCESS;
    Handle<cl_mem> native;
    if (found_.works_in_host_memory) {
      native.reset(clCreateBuffer(context(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, least, memory, &code));
    }
    if (code != CL_SUCCESS) {
      ::operator delete(memory, kPage);
      return check(code, "clCreateBuffer", __FILE__, __LINE__);
    }
    return std::make_unique<HostBuffer>(*this, memory, bytes, std::move(native));
  }
  cl_int code = CL_SUCCESS;
  Handle<cl_mem> memory(clCreateBuffer(context(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, least, nullptr, &code));
  CATENA_RETURN_IF_ERROR(check(code, "clCreateBuffer", __FILE__, __LINE__));
  Handle<cl_command_queue> queue(clCreateCommandQueueWithProperties(context(), native(), nullptr, &code));
  CATENA_RETURN_IF_ERROR(check(code, "clCreateCommandQueueWithProperties", __FILE__, __LINE__));
  void* mapped = clEnqueueMapBuffer(queue.get(), memory.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, least, 0,
                                    nullptr, nullptr, &code);
  CATENA_RETURN_IF_ERROR(check(code, "clEnqueueMapBuffer", __FILE__, __LINE__));
  return std::make_unique<MappedBuffer>(*this, std::move(memory), std::move(queue), mapped, bytes);
}

Result<std::unique_ptr<Buffer>> OpenClDevice::map_host(HostMemory const& host) {
  const std::span<std::byte> memory = host.bytes;
  CATENA_RETURN_IF_ERROR(failed());
  CATENA_RETURN_IF_ERROR(check_mappable(memory));
  if (!found_.works_in_host_memory) {
    return absl::UnimplementedError(concat("map host memory: kernels on ", info().name,
                                           " cannot work on the host's memory, so gather is not available; CUDA "
                                           "GPUs and the CPU as OpenCL device can"));
  }
  cl_int code = CL_SUCCESS;
  Handle<cl_mem> native(
      clCreateBuffer(context(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, memory.size(), memory.data(), &code));
  if (code != CL_SUCCESS) {
    const Status status = check(code, "clCreateBuffer", __FILE__, __LINE__);
    return Status(status.code(), concat(std::string(status.message()), ", asked for ", memory.size(), " bytes"));
  }
  return std::make_unique<OpenClBuffer>(std::move(native), memory.size());
}

}  // namespace catena::device::opencl
