// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include "device/device.hpp"

namespace catena::device_server {

/// Whether a device server compiles `source` for a client that it does not trust, as the process of a vendor's NF is:
/// a kernel that the static check passes, with the headers of this version, or one of the framework's own, which move
/// packets; and how it is launched, which whoever launches it cannot choose. Any thread. Errors: InvalidArgument with
/// the place of the first thing that no kernel may do; PermissionDenied for headers under the framework's names that
/// are not its own; as static_check::check_kernel().
Result<device::LaunchForm> judge(device::ProgramSource const& source);

}  // namespace catena::device_server
