// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/opencl/device.hpp"

#include <map>
#include <mutex>
#include <string>

namespace catena::device::opencl {

class OpenClKernel final : public Kernel {
 public:
  OpenClKernel(OpenClDevice& device, Handle<cl_kernel> kernel, std::string name, cl_uint argument_count)
      : device_(&device), kernel_(std::move(kernel)), name_(std::move(name)), argument_count_(argument_count) {}

  /// InvalidArgument if the kernel takes more or fewer arguments.
  Status check(LaunchShape const& shape, std::span<const KernelArgument> arguments) const;
  /// Sets the arguments and enqueues. Any thread: a cl_kernel stores its arguments, so a lock serializes streams.
  Status enqueue(cl_command_queue queue, LaunchShape const& shape, std::span<const KernelArgument> arguments);

 private:
  bool takes_local(std::span<const KernelArgument> arguments) const { return argument_count_ == arguments.size() + 1; }
  Status set_argument(cl_uint index, KernelArgument const& argument);

  OpenClDevice* device_;
  std::mutex mutex_;
  Handle<cl_kernel> kernel_;
  std::string name_;
  cl_uint argument_count_;
};

class OpenClProgram final : public Program {
 public:
  OpenClProgram(OpenClDevice& device, Handle<cl_program> program) : device_(&device), program_(std::move(program)) {}
  Result<Kernel*> kernel(std::string_view name) override;

 private:
  OpenClDevice* device_;
  Handle<cl_program> program_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<OpenClKernel>, std::less<>> kernels_;
};

}  // namespace catena::device::opencl
