// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/device.hpp"

namespace catena::device::cuda {

/// A graph whose nodes follow one another.
class CudaLaunchList final : public LaunchList {
 public:
  CudaLaunchList(CudaDevice& device, CUgraph graph) : device_(&device), graph_(graph) {}
  CudaLaunchList(CudaLaunchList const&) = delete;
  CudaLaunchList& operator=(CudaLaunchList const&) = delete;
  ~CudaLaunchList() override;

  Status launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) override;
  // The context must be current.
  Status enqueue(CUstream stream);
  Status upload(CUstream stream);

 private:
  Status instantiate();
  CudaDevice* device_;
  CUgraph graph_;
  CUgraphNode last_ = nullptr;
  CUgraphExec executable_ = nullptr;  ///< made for upload() or the first run
};

}  // namespace catena::device::cuda
