// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/cuda/device.hpp"

#include <memory>
#include <vector>

namespace catena::device::cuda {

/// A green context: a subset of the GPU's SMs, with the memory and the programs of the primary context.
class CudaPartition final : public Partition {
 public:
  /// `groups`: SMs of the device used by no other partition.
  static Result<std::unique_ptr<Partition>> create(CudaDevice& device, std::vector<CUdevResource> groups);
  CudaPartition(CudaPartition const&) = delete;
  CudaPartition& operator=(CudaPartition const&) = delete;
  ~CudaPartition() override;

  std::uint32_t compute_units() const override { return compute_units_; }
  CUcontext context() const { return context_; }

 private:
  explicit CudaPartition(CudaDevice& device) : device_(&device) {}

  CudaDevice* device_;
  CUgreenCtx green_ = nullptr;
  CUcontext context_ = nullptr;
  std::uint32_t compute_units_ = 0;
};

}  // namespace catena::device::cuda
