// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"

#include <catena/core/status.hpp>

/// How the benchmark gets kernels whose accesses are not checked.
///
/// Nothing of the product knows that there are such: no macro, which the source of a kernel might define, no option, no
/// key and no variable. The benchmark lays a device of its own between a chain and the real one, which changes one line
/// of <catena/kernel/iso_ptr.hpp> in the text that is about to be compiled. This folder is not installed.
namespace catena::bench {

/// Whether accesses through IsoPtr are checked.
enum class Checks { kOn, kOff };

/// `source` with the checks off, as text that was not changed otherwise. Internal where the one line to change is not
/// there, or there more than once: what would be measured is not known then.
Result<device::ProgramSource> without_checks(device::ProgramSource source);

/// A real device, for one chain or kernel after the other: what a chain does to end leaves the real one open. With
/// Checks::kOff kernels are compiled without_checks(), and info().target is another, by which the cache on disk keeps
/// both programs apart. Everything else goes to the real device: buffers, programs and streams are its own. Thread
/// rule: as every Device.
class ChecksDevice final : public device::Device {
 public:
  /// `real` must outlive this.
  ChecksDevice(device::Device& real, Checks checks);

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
  Result<device::Binary> compile(device::ProgramSource const& source) override;
  Result<std::unique_ptr<device::Program>> load(std::span<const std::byte> binary) override {
    return real_->load(binary);
  }
  Status failed() const override { return real_->failed(); }
  void abandon(Status const& reason) override { real_->abandon(reason); }

 private:
  device::Device* real_;
  Checks checks_;
  device::DeviceInfo info_;
};

}  // namespace catena::bench
