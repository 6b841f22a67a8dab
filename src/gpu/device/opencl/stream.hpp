// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/opencl/device.hpp"

namespace catena::device::opencl {

/// An in-order command queue.
class OpenClStream final : public Stream {
 public:
  OpenClStream(OpenClDevice& device, Handle<cl_command_queue> queue) : device_(&device), queue_(std::move(queue)) {}
  OpenClStream(OpenClStream const&) = delete;
  OpenClStream& operator=(OpenClStream const&) = delete;
  ~OpenClStream() override;

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
  Result<std::unique_ptr<Event>> record() override;
  Result<std::unique_ptr<Event>> record_timestamp() override { return record_event(true); }
  Status wait_for(Event& event) override;
  Status flush() override;

 private:
  Result<std::unique_ptr<Event>> record_event(bool is_timestamp);

  OpenClDevice* device_;
  Handle<cl_command_queue> queue_;
};

}  // namespace catena::device::opencl
