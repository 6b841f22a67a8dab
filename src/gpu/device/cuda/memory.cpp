// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/cuda/memory.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace catena::device::cuda {

namespace {

/// The driver refuses allocations of no bytes; ours of size 0 still have an address.
constexpr std::size_t kLeastBytes = 16;

class DeviceMemory final : public CudaBuffer {
 public:
  DeviceMemory(CudaDevice& device, CUdeviceptr memory, std::size_t bytes)
      : CudaBuffer(memory, bytes), device_(&device) {}
  DeviceMemory(DeviceMemory const&) = delete;
  DeviceMemory& operator=(DeviceMemory const&) = delete;
  ~DeviceMemory() override {
    if (!device_->failed().ok()) {
      return;
    }
    const ContextScope scope(*device_);
    device_->driver().cuMemFree(native());
  }

 private:
  CudaDevice* device_;
};

/// What is registered in this process, and for how many devices: the driver takes memory once, for all of them.
class Registered {
 public:
  static Registered& all() {
    static Registered registered;
    return registered;
  }
  /// In the context of `device`, which is entered.
  CUresult add(CudaDevice& device, std::span<std::byte> memory) {
    const std::scoped_lock lock(mutex_);
    const auto found = users_.find({memory.data(), memory.size()});
    if (found != users_.end()) {
      ++found->second;
      return CUDA_SUCCESS;
    }
    const CUresult code = device.driver().cuMemHostRegister(memory.data(), memory.size(),
                                                            CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (code == CUDA_SUCCESS) {
      users_[{memory.data(), memory.size()}] = 1;
    }
    return code;
  }
  void remove(CudaDevice& device, std::span<std::byte> memory) {
    const std::scoped_lock lock(mutex_);
    const auto found = users_.find({memory.data(), memory.size()});
    if (--found->second == 0) {
      device.driver().cuMemHostUnregister(memory.data());
      users_.erase(found);
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::byte*, std::size_t>, std::uint32_t> users_;
};

/// The registration of host memory that belongs to somebody else.
class HostRegistration {
 public:
  HostRegistration(CudaDevice& device, std::span<std::byte> memory) : device_(&device), memory_(memory) {}
  HostRegistration(HostRegistration const&) = delete;
  HostRegistration& operator=(HostRegistration const&) = delete;
  ~HostRegistration() {
    if (!device_->failed().ok()) {
      return;  // the device may still write to it
    }
    const ContextScope scope(*device_);
    Registered::all().remove(*device_, memory_);
  }

 private:
  CudaDevice* device_;
  std::span<std::byte> memory_;
};

/// Registered host memory under the address that kernels use for it.
class MappedMemory final : public CudaBuffer {
 public:
  MappedMemory(std::unique_ptr<HostRegistration> registration, CUdeviceptr address, std::size_t bytes)
      : CudaBuffer(address, bytes), registration_(std::move(registration)) {}

 private:
  std::unique_ptr<HostRegistration> registration_;
};

/// Page-locked host memory under the address that kernels use for it.
class HostWindow final : public CudaBuffer {
 public:
  HostWindow(CUdeviceptr address, std::size_t bytes) : CudaBuffer(address, bytes) {}
};

/// Page-locked host memory.
class CudaPinnedBuffer final : public PinnedBuffer {
 public:
  CudaPinnedBuffer(CudaDevice& device, void* memory, CUdeviceptr address, std::size_t bytes)
      : device_(&device), memory_(memory), bytes_(bytes), window_(address, bytes) {}
  CudaPinnedBuffer(CudaPinnedBuffer const&) = delete;
  CudaPinnedBuffer& operator=(CudaPinnedBuffer const&) = delete;
  ~CudaPinnedBuffer() override {
    if (!device_->failed().ok()) {
      return;  // the device may still write to it; see CudaDevice::~CudaDevice()
    }
    const ContextScope scope(*device_);
    device_->driver().cuMemFreeHost(memory_);
  }
  std::span<std::byte> bytes() override { return {static_cast<std::byte*>(memory_), bytes_}; }
  Buffer* window() override { return &window_; }

 private:
  CudaDevice* device_;
  void* memory_;
  std::size_t bytes_;
  HostWindow window_;
};

Status with_size(Status const& status, std::size_t bytes) {
  return Status(status.code(), concat(std::string(status.message()), ", asked for ", bytes, " bytes"));
}

}  // namespace

Result<std::unique_ptr<Buffer>> CudaDevice::allocate(std::size_t bytes) {
  CATENA_CUDA_ENTER(*this);
  CUdeviceptr memory = 0;
  const CUresult code = driver().cuMemAlloc(&memory, std::max(bytes, kLeastBytes));
  if (const Status status = check(code, "cuMemAlloc", __FILE__, __LINE__); !status.ok()) {
    return with_size(status, bytes);
  }
  return std::make_unique<DeviceMemory>(*this, memory, bytes);
}

Result<std::unique_ptr<PinnedBuffer>> CudaDevice::allocate_pinned(std::size_t bytes) {
  CATENA_CUDA_ENTER(*this);
  void* memory = nullptr;
  const CUresult code = driver().cuMemHostAlloc(&memory, std::max(bytes, kLeastBytes),
                                                CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  if (const Status status = check(code, "cuMemHostAlloc", __FILE__, __LINE__); !status.ok()) {
    return with_size(status, bytes);
  }
  CUdeviceptr address = 0;
  if (const Status status = check(driver().cuMemHostGetDevicePointer(&address, memory, 0), "cuMemHostGetDevicePointer",
                                  __FILE__, __LINE__);
      !status.ok()) {
    driver().cuMemFreeHost(memory);
    return status;
  }
  return std::make_unique<CudaPinnedBuffer>(*this, memory, address, bytes);
}

Result<std::unique_ptr<Buffer>> CudaDevice::map_host(HostMemory const& host) {
  const std::span<std::byte> memory = host.bytes;
  CATENA_RETURN_IF_ERROR(check_mappable(memory));
  CATENA_CUDA_ENTER(*this);
  const CUresult code = Registered::all().add(*this, memory);
  if (const Status status = check(code, "cuMemHostRegister", __FILE__, __LINE__); !status.ok()) {
    // the driver's codes for memory that it cannot register say little about why, and differ between its versions
    return with_size(absl::IsUnavailable(status) ? status : absl::ResourceExhaustedError(status.message()),
                     memory.size());
  }
  auto registration = std::make_unique<HostRegistration>(*this, memory);
  CUdeviceptr address = 0;
  CATENA_CUDA_TRY_ON(*this, cuMemHostGetDevicePointer(&address, memory.data(), 0));
  return std::make_unique<MappedMemory>(std::move(registration), address, memory.size());
}

}  // namespace catena::device::cuda
