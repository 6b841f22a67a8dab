// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/device.hpp"

namespace catena::device::cuda {

/// A graph whose nodes follow one another.
class CudaCommandBuffer final : public CommandBuffer {
 public:
  CudaCommandBuffer(CudaDevice& device, CUgraph graph) : device_(&device), graph_(graph) {}
  CudaCommandBuffer(CudaCommandBuffer const&) = delete;
  CudaCommandBuffer& operator=(CudaCommandBuffer const&) = delete;
  ~CudaCommandBuffer() override;

  Status launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) override;
  // The context must be current.
  Status enqueue(CUstream stream);
  Status finalize(CUstream stream);

 private:
  Status instantiate();
  CudaDevice* device_;
  CUgraph graph_;
  CUgraphNode last_ = nullptr;
  CUgraphExec executable_ = nullptr;  ///< made by finalize() or the first enqueue()
};

}  // namespace catena::device::cuda
