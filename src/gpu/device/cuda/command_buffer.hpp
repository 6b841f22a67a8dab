// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/cuda/device.hpp"
#include "gpu/device/cuda/event.hpp"

#include <memory>
#include <vector>

namespace catena::device::cuda {

/// A graph whose nodes form a linear chain. Each run records its timestamp events again.
class CudaCommandBuffer final : public CommandBuffer {
 public:
  /// `context`: launches run on its compute units only.
  CudaCommandBuffer(CudaDevice& device, CUgraph graph, CUcontext context)
      : device_(&device), graph_(graph), context_(context) {}
  CudaCommandBuffer(CudaCommandBuffer const&) = delete;
  CudaCommandBuffer& operator=(CudaCommandBuffer const&) = delete;
  ~CudaCommandBuffer() override;

  Status launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) override;
  Result<Event*> record_timestamp() override;
  // The context must be current.
  Status enqueue(CUstream stream);
  Status finalize(CUstream stream);

 private:
  Status check_recording(std::string_view what) const;
  Status instantiate();
  CudaDevice* device_;
  CUgraph graph_;
  CUcontext context_;
  CUgraphNode last_ = nullptr;
  std::vector<std::unique_ptr<CudaEvent>> timestamps_;
  CUgraphExec executable_ = nullptr;  ///< created by finalize() or the first enqueue()
};

}  // namespace catena::device::cuda
