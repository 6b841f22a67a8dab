// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include "gpu/device/device.hpp"

namespace catena::device_server {

/// Decides whether a device server compiles `source` for an untrusted client, such as the process of a vendor's NF.
/// Accepted are kernels with the headers of this version if they pass the static check, and the framework's own
/// kernels, which move packets. Returns the arguments of a launch, which the client cannot choose. Any thread. Errors:
/// InvalidArgument with the position of the first forbidden construct; PermissionDenied for foreign headers under the
/// framework's names; as static_check::check_kernel().
Result<device::LaunchForm> judge(device::ProgramSource const& source);

}  // namespace catena::device_server
