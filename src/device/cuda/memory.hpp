// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/device.hpp"

namespace catena::device::cuda {

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(CudaDevice& device, CUdeviceptr memory, std::size_t bytes)
      : device_(&device), memory_(memory), bytes_(bytes) {}
  CudaBuffer(CudaBuffer const&) = delete;
  CudaBuffer& operator=(CudaBuffer const&) = delete;
  ~CudaBuffer() override;
  std::size_t size() const override { return bytes_; }
  CUdeviceptr native() const { return memory_; }

 private:
  CudaDevice* device_;
  CUdeviceptr memory_;
  std::size_t bytes_;
};

}  // namespace catena::device::cuda
