// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/remote/device.hpp"
#include "gpu/device/remote/event.hpp"

namespace catena::device::remote {

/// A recording kept by the server: one command runs it.
class RemoteCommandBuffer final : public CommandBuffer {
 public:
  RemoteCommandBuffer(RemoteDevice& device, std::shared_ptr<Connection> connection, std::uint32_t number)
      : device_(&device), connection_(std::move(connection)), number_(number) {}
  ~RemoteCommandBuffer() override { connection_->free(Kind::kCommandBuffer, number_); }

  Status launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) override;
  Result<Event*> record_timestamp() override;
  std::uint32_t number() const { return number_; }
  /// Launches can no longer be added.
  bool is_final() const { return is_final_; }
  void set_final() { is_final_ = true; }

 private:
  RemoteDevice* device_;
  std::shared_ptr<Connection> connection_;
  std::uint32_t number_;
  std::vector<std::unique_ptr<RemoteEvent>> timestamps_;
  bool is_final_ = false;
};

}  // namespace catena::device::remote
