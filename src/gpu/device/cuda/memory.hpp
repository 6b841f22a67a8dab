// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/cuda/device.hpp"

namespace catena::device::cuda {

/// An address on the device. The derived classes own the memory at this address.
class CudaBuffer : public Buffer {
 public:
  CudaBuffer(CudaBuffer const&) = delete;
  CudaBuffer& operator=(CudaBuffer const&) = delete;
  std::size_t size() const override { return bytes_; }
  CUdeviceptr native() const { return address_; }

 protected:
  CudaBuffer(CUdeviceptr address, std::size_t bytes) : address_(address), bytes_(bytes) {}

 private:
  CUdeviceptr address_;
  std::size_t bytes_;
};

}  // namespace catena::device::cuda
