// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "device/device.hpp"
#include "device/remote/device.hpp"
#include "device/remote/supervisor.hpp"

namespace catena::device::testing {

/// The device server of a test: of this build, on `device`.
inline remote::Supervisor::Options server_options(std::string device = "opencl") {
  return {CATENA_DEVICE_SERVER, std::move(device), {}};
}

/// A new connection to the one server of this test program, on an OpenCL device.
inline Result<std::unique_ptr<Device>> open_remote() {
  static const Result<std::unique_ptr<remote::Supervisor>> kServer = remote::Supervisor::start(server_options());
  CATENA_RETURN_IF_ERROR(kServer.status());
  CATENA_ASSIGN_OR_RETURN(remote::Fd socket, (*kServer)->connect("test"));
  return remote::connect(std::move(socket));
}

}  // namespace catena::device::testing
