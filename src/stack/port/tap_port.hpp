// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <memory>
#include <string>

#include "stack/port/vnet_port.hpp"

namespace catena::stack {

/// A TAP interface of the kernel.
class TapPort final : public VnetPort {
 public:
  /// Makes the interface `name`, or attaches to it where it exists. PermissionDenied: needs CAP_NET_ADMIN, or an
  /// interface of this user. AlreadyExists: another process has it. Unavailable: the kernel has no TAPs.
  static Result<std::unique_ptr<TapPort>> open(std::string const& name);
  /// Takes an opened TAP, as descriptor() of another TapPort in another process.
  static std::unique_ptr<TapPort> adopt(FileDescriptor tap);

 private:
  using VnetPort::VnetPort;
};

}  // namespace catena::stack
