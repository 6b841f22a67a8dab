// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/shared_layout.hpp>

#include <cstdint>
#include <memory>
#include <span>

#include "device/device.hpp"

namespace catena::copy {

/// The device twin of a packet pool: slot i of one is slot i of the other. Shared by the GPU NFs of a chain; what is
/// valid in it, the plan knows. See shared_layout.hpp for its layout.
class SharedBuffer {
 public:
  /// `pool`: the pool's slots, kSlotBytes each; must outlive this and not move. Registers the pool with the device, so
  /// that copies from it run at full speed and, where the device can, kernels reach it. ResourceExhausted: no memory.
  /// `owner`: keeps the pool's memory, which stays to the end of the process where the device is lost: what was
  /// enqueued may still write to it. Null: the caller sees to that. `kernels_reach_host`: false keeps kernels off the
  /// host's memory where they could reach it.
  static Result<std::unique_ptr<SharedBuffer>> create(device::Device& device, device::HostMemory const& pool,
                                                      std::shared_ptr<const void> owner = {},
                                                      bool kernels_reach_host = true);
  ~SharedBuffer();
  SharedBuffer(SharedBuffer const&) = delete;
  SharedBuffer& operator=(SharedBuffer const&) = delete;

  device::Buffer& buffer() const { return *buffer_; }
  /// The packet pool as kernels see it; null where they do not, and why_not_mapped() says why.
  device::Buffer* mapped() const { return kernels_reach_host_ ? mapped_.get() : nullptr; }
  /// Whether kernels may use memory of the host at all.
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
