// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "base/core/file_descriptor.hpp"
#include "stack/port/port.hpp"

namespace catena::stack {

/// Frames of the kernel with virtio headers: the kernel completes checksums, cuts large frames into segments, and
/// passes large frames in.
class VnetPort : public Port {
 public:
  bool send(OutgoingFrame const& frame) override;
  std::optional<std::span<const std::byte>> receive() override;
  int descriptor() const override { return fd_.get(); }

 protected:
  /// `fd`: not blocking; a frame per read and write, with a VnetHeader.
  explicit VnetPort(FileDescriptor fd);
  int fd() const { return fd_.get(); }

 private:
  FileDescriptor fd_;
  std::vector<std::byte> buffer_;
};

/// Of errno. PermissionDenied with the cure; else Unavailable.
Status kernel_error(std::string_view action, std::string_view cure);
/// InvalidArgument: no name of an interface.
Status check_interface_name(std::string const& name);

}  // namespace catena::stack
