// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/cuda/device.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace catena::device::cuda {

/// The launch signature of a kernel. The driver takes arguments as bare addresses and reads as many bytes as the kernel
/// declares, so the argument sizes are checked before.
struct KernelSignature {
  std::optional<std::vector<std::size_t>> argument_bytes;  ///< nullopt if the driver cannot tell (before CUDA 12.4)
  std::uint32_t max_group_size = 0;                        ///< registers may allow fewer than the device
  std::uint32_t max_local_bytes = 0;                       ///< dynamic local memory
};

class CudaKernel final : public Kernel {
 public:
  CudaKernel(CudaDevice& device, CUfunction function, std::string name, KernelSignature signature)
      : device_(&device), function_(function), name_(std::move(name)), signature_(std::move(signature)) {}

  /// Any thread; the context must be current.
  Status enqueue(CUstream stream, LaunchShape const& shape, std::span<const KernelArgument> arguments) const;
  /// Adds a node to `graph`, after `previous` if not null. Any thread; the context must be current.
  Result<CUgraphNode> add_to(CUgraph graph, CUgraphNode previous, LaunchShape const& shape,
                             std::span<const KernelArgument> arguments) const;

 private:
  Status check_launch(LaunchShape const& shape, std::span<const KernelArgument> arguments) const;

  CudaDevice* device_;
  CUfunction function_;
  std::string name_;
  KernelSignature signature_;
};

class CudaProgram final : public Program {
 public:
  CudaProgram(CudaDevice& device, CUmodule module) : device_(&device), module_(module) {}
  CudaProgram(CudaProgram const&) = delete;
  CudaProgram& operator=(CudaProgram const&) = delete;
  ~CudaProgram() override;
  Result<Kernel*> kernel(std::string_view name) override;

 private:
  CudaDevice* device_;
  CUmodule module_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<CudaKernel>, std::less<>> kernels_;
};

}  // namespace catena::device::cuda
