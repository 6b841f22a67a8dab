// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "io/port.hpp"
#include "packet/memory/packet_pool.hpp"
#include "stack/port/port.hpp"

namespace catena::stack {

/// A DPDK device. Checksums and segments are made by the CPU.
class DevicePort final : public Port {
 public:
  /// `device`: an EAL device string. Errors: see io::open_dpdk_port().
  static Result<std::unique_ptr<DevicePort>> open(std::string const& device);
  /// A memif interface at the socket `path`. It is the server, unless ",role=client" follows.
  static Result<std::unique_ptr<DevicePort>> open_memif(std::string const& path);
  ~DevicePort() override;
  DevicePort(DevicePort const&) = delete;
  DevicePort& operator=(DevicePort const&) = delete;

  bool send(OutgoingFrame const& frame) override;
  std::optional<std::span<const std::byte>> receive() override;
  int descriptor() const override { return device_->readable_when_received(); }

 private:
  static constexpr std::size_t kBurst = 32;  ///< frames
  DevicePort(std::unique_ptr<memory::PacketPool> pool, std::shared_ptr<io::Port> device)
      : pool_(std::move(pool)), device_(std::move(device)) {}
  void release_received();

  std::unique_ptr<memory::PacketPool> pool_;
  std::shared_ptr<io::Port> device_;  ///< uses the pool
  std::array<io::SlotFrame, kBurst> arrived_ = {};
  std::size_t count_ = 0;  ///< in arrived_
  std::size_t next_ = 0;   ///< in arrived_; the one before is the caller's
};

}  // namespace catena::stack
