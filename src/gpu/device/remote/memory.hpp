// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/remote/device.hpp"

namespace catena::device::remote {

/// Device memory, or a window on a registered memory range.
class RemoteBuffer final : public Buffer {
 public:
  RemoteBuffer(std::shared_ptr<Connection> connection, std::uint32_t number, std::size_t size,
               std::optional<std::uint32_t> memory_range = {})
      : connection_(std::move(connection)), number_(number), memory_range_(memory_range), size_(size) {}
  ~RemoteBuffer() override;
  std::size_t size() const override { return size_; }
  std::uint32_t number() const { return number_; }

 private:
  std::shared_ptr<Connection> connection_;
  std::uint32_t number_;
  std::optional<std::uint32_t> memory_range_;  ///< freed with the window
  std::size_t size_;
};

/// Memory made by the server for this client.
class RemotePinnedBuffer final : public PinnedBuffer {
 public:
  RemotePinnedBuffer(std::shared_ptr<Connection> connection, ipc::Mapping memory, std::uint32_t memory_range,
                     std::unique_ptr<RemoteBuffer> window);
  ~RemotePinnedBuffer() override;
  std::span<std::byte> bytes() override { return memory_.bytes(); }
  Buffer* window() override { return window_.get(); }

 private:
  std::shared_ptr<Connection> connection_;
  ipc::Mapping memory_;
  std::uint32_t memory_range_;
  std::unique_ptr<RemoteBuffer> window_;
};

}  // namespace catena::device::remote
