// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <sys/types.h>

#include "sandbox/sandbox.hpp"

namespace catena::sandbox {

/// Sets the limits of `options` for the first process of a sandbox, which those that it starts inherit, and its CPUs.
/// Unavailable with what the system says.
Status limit_process(pid_t process, SandboxOptions const& options);

}  // namespace catena::sandbox
