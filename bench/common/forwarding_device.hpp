// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"

#include <memory>
#include <span>
#include <vector>

namespace catena::bench {

/// A real device with a description of its own. Benchmarks override individual calls. A chain's teardown leaves the
/// real device open. Thread rule: as every Device.
class ForwardingDevice : public device::Device {
 public:
  /// `real` must outlive this.
  explicit ForwardingDevice(device::Device& real) : info_(real.info()), real_(&real) {}

  device::DeviceInfo const& info() const override { return info_; }
  Result<std::unique_ptr<device::Buffer>> allocate(std::size_t bytes) override { return real_->allocate(bytes); }
  Result<std::unique_ptr<device::PinnedBuffer>> allocate_pinned(std::size_t bytes) override {
    return real_->allocate_pinned(bytes);
  }
  Result<std::unique_ptr<device::Buffer>> map_host(device::HostMemory const& memory) override {
    return real_->map_host(memory);
  }
  Result<std::unique_ptr<device::Stream>> create_stream(device::StreamOptions const& options) override {
    return real_->create_stream(options);
  }
  Result<std::unique_ptr<device::CommandBuffer>> create_command_buffer(device::Partition* partition) override {
    return real_->create_command_buffer(partition);
  }
  Result<std::vector<std::unique_ptr<device::Partition>>> divide(
      std::span<const std::uint32_t> compute_units) override {
    return real_->divide(compute_units);
  }
  Result<device::Binary> compile(device::ProgramSource const& source) override { return real_->compile(source); }
  Result<std::unique_ptr<device::Program>> load(std::span<const std::byte> binary) override {
    return real_->load(binary);
  }
  Status failed() const override { return real_->failed(); }
  void abandon(Status const& reason) override { real_->abandon(reason); }

 protected:
  device::DeviceInfo info_;

 private:
  device::Device* real_;
};

}  // namespace catena::bench
