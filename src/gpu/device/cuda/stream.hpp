// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/cuda/device.hpp"

namespace catena::device::cuda {

/// A stream that does not wait for the default stream, which is unused here.
class CudaStream final : public Stream {
 public:
  CudaStream(CudaDevice& device, CUstream stream) : device_(&device), stream_(stream) {}
  CudaStream(CudaStream const&) = delete;
  CudaStream& operator=(CudaStream const&) = delete;
  ~CudaStream() override;

  Status copy_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source) override;
  Status copy_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset) override;
  Status copy_rows_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source,
                             RowShape const& shape) override;
  Status copy_rows_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset,
                           RowShape const& shape) override;
  Status fill(Buffer& target, std::size_t offset, std::size_t bytes, std::uint8_t value) override;
  Status launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) override;
  Status enqueue(CommandBuffer& commands) override;
  Status finalize(CommandBuffer& commands) override;
  Result<std::unique_ptr<Event>> record() override { return record_event(false); }
  Result<std::unique_ptr<Event>> record_timestamp() override { return record_event(true); }
  Status wait_for(Event& event) override;
  Status flush() override;

 private:
  Result<std::unique_ptr<Event>> record_event(bool keeps_time);
  CudaDevice* device_;
  CUstream stream_;
};

}  // namespace catena::device::cuda
