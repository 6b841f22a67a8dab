// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/memory.hpp"

#include <catena/core/text.hpp>

#include <algorithm>

namespace catena::device::cuda {

namespace {

/// The driver refuses allocations of no bytes; ours of size 0 still have an address.
constexpr std::size_t kLeastBytes = 16;

/// Page-locked host memory.
class CudaPinnedBuffer final : public PinnedBuffer {
 public:
  CudaPinnedBuffer(CudaDevice& device, void* memory, std::size_t bytes)
      : device_(&device), memory_(memory), bytes_(bytes) {}
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

 private:
  CudaDevice* device_;
  void* memory_;
  std::size_t bytes_;
};

Status with_size(Status const& status, std::size_t bytes) {
  return Status(status.code(), concat(std::string(status.message()), ", asked for ", bytes, " bytes"));
}

}  // namespace

CudaBuffer::~CudaBuffer() {
  if (!device_->failed().ok()) {
    return;
  }
  const ContextScope scope(*device_);
  device_->driver().cuMemFree(memory_);
}

Result<std::unique_ptr<Buffer>> CudaDevice::allocate(std::size_t bytes) {
  CATENA_CUDA_ENTER(*this);
  CUdeviceptr memory = 0;
  const CUresult code = driver().cuMemAlloc(&memory, std::max(bytes, kLeastBytes));
  if (const Status status = check(code, "cuMemAlloc", __FILE__, __LINE__); !status.ok()) {
    return with_size(status, bytes);
  }
  return std::make_unique<CudaBuffer>(*this, memory, bytes);
}

Result<std::unique_ptr<PinnedBuffer>> CudaDevice::allocate_pinned(std::size_t bytes) {
  CATENA_CUDA_ENTER(*this);
  void* memory = nullptr;
  const CUresult code = driver().cuMemHostAlloc(&memory, std::max(bytes, kLeastBytes),
                                                CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  if (const Status status = check(code, "cuMemHostAlloc", __FILE__, __LINE__); !status.ok()) {
    return with_size(status, bytes);
  }
  return std::make_unique<CudaPinnedBuffer>(*this, memory, bytes);
}

}  // namespace catena::device::cuda
