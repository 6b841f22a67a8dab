// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/opencl/event.hpp"
#include "gpu/device/opencl/program.hpp"

#include <memory>
#include <vector>

namespace catena::device::opencl {

/// Stores its launches and enqueues each of them in every run. OpenCL 3.0 offers no alternative (command buffers are an
/// extension supported by neither PoCL 3.1 nor Intel's runtime for CPUs).
class OpenClCommandBuffer final : public CommandBuffer {
 public:
  explicit OpenClCommandBuffer(OpenClDevice& device) : device_(&device) {}

  Status launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) override;
  Result<Event*> record_timestamp() override;
  void finalize() { is_final_ = true; }
  Status enqueue(cl_command_queue queue);

 private:
  struct Entry {
    OpenClKernel* kernel;  ///< null: a timestamp
    OpenClEvent* timestamp;
    LaunchShape shape;
    std::vector<std::vector<std::byte>> bytes;
    std::vector<KernelArgument> arguments;  ///< arguments by value point into `bytes`
  };
  Status check_recording(std::string_view what) const;
  OpenClDevice* device_;
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<OpenClEvent>> timestamps_;
  bool is_final_ = false;
};

}  // namespace catena::device::opencl
