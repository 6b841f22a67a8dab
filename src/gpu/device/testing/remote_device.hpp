// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gpu/device/device.hpp"
#include "gpu/device/remote/device.hpp"
#include "gpu/device/remote/server_pool.hpp"
#include "gpu/device/remote/supervisor.hpp"

namespace catena::device::testing {

/// Options of a test's device server: of this build, on `device`.
remote::Supervisor::Options server_options(std::string device = "opencl");

/// A new connection to the test program's only server for the first device of `backend`.
Result<std::unique_ptr<Device>> open_remote(std::string_view backend = "opencl");
/// The same for another process; see remote::ServerPool::connect().
Result<FileDescriptor> connect_remote(std::string_view backend, std::string_view client, std::string* why);

}  // namespace catena::device::testing
