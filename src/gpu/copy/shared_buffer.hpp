// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/shared_layout.hpp>

#include <cstdint>
#include <memory>
#include <span>

#include "gpu/device/device.hpp"

namespace catena::copy {

/// The device twin of a packet pool: slot i of the buffer is the twin of slot i of the pool. Shared by the GPU NFs of a
/// chain. The plan tracks its valid fields. Layout: see shared_layout.hpp.
class SharedBuffer {
 public:
  /// `pool`: the slots of the pool, kSlotBytes each; must outlive this and not move. Registers the pool with the device
  /// for full-speed copies and, if the device supports it, for kernel access. ResourceExhausted: out of memory.
  /// `owner`: keeps the pool's memory. If the device is lost, the memory stays until the process ends, because enqueued
  /// work may still write to it. Null: the caller keeps it. `kernels_reach_host`: false denies kernels access to host
  /// memory even if the device supports it.
  static Result<std::unique_ptr<SharedBuffer>> create(device::Device& device, device::HostMemory const& pool,
                                                      std::shared_ptr<const void> owner = {},
                                                      bool kernels_reach_host = true);
  ~SharedBuffer();
  SharedBuffer(SharedBuffer const&) = delete;
  SharedBuffer& operator=(SharedBuffer const&) = delete;

  device::Buffer& buffer() const { return *buffer_; }
  /// The packet pool for kernels; null without kernel access, for the reason in why_not_mapped().
  device::Buffer* mapped() const { return kernels_reach_host_ ? mapped_.get() : nullptr; }
  /// Whether kernels may access host memory at all.
  bool kernels_reach_host() const { return kernels_reach_host_; }
  Status const& why_not_mapped() const { return why_not_mapped_; }
  std::span<std::byte> pool() const { return pool_; }
  std::uint32_t slots() const { return static_cast<std::uint32_t>(pool_.size() / packet::kSlotBytes); }

 private:
  SharedBuffer(device::Device& device, bool kernels_reach_host)
      : device_(&device), kernels_reach_host_(kernels_reach_host) {}

  device::Device* device_;
  bool kernels_reach_host_;
  std::shared_ptr<const void> owner_;
  std::span<std::byte> pool_;
  std::unique_ptr<device::Buffer> buffer_;
  std::unique_ptr<device::Buffer> mapped_;
  Status why_not_mapped_;
};

}  // namespace catena::copy
