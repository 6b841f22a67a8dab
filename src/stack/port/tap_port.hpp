// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/file_descriptor.hpp"
#include "stack/port/port.hpp"

namespace catena::stack {

/// A TAP interface of the kernel, with virtio headers: the kernel completes checksums, cuts large frames into segments,
/// and gives large frames in. Belongs to one thread at a time.
class TapPort final : public Port {
 public:
  struct Counters {
    std::uint64_t sent = 0;
    std::uint64_t no_room = 0;  ///< frames without room in the kernel
    std::uint64_t received = 0;
    std::uint64_t bad_checksum = 0;  ///< received frames, dropped
  };

  /// Makes the interface `name`, or attaches to it where it exists. PermissionDenied: needs CAP_NET_ADMIN, or an
  /// interface that belongs to this user. Unavailable: the kernel has no TAPs.
  static Result<std::unique_ptr<TapPort>> open(std::string const& name);
  /// Takes an opened TAP, as descriptor() of another TapPort in another process.
  static std::unique_ptr<TapPort> adopt(FileDescriptor tap);
  ~TapPort() override;
  TapPort(TapPort const&) = delete;
  TapPort& operator=(TapPort const&) = delete;

  bool send(OutgoingFrame const& frame) override;
  std::optional<std::span<const std::byte>> receive() override;
  int descriptor() const override { return fd_; }
  Counters const& counters() const { return counters_; }

 private:
  explicit TapPort(int fd);

  int fd_;
  std::vector<std::byte> buffer_;
  Counters counters_;
};

}  // namespace catena::stack
