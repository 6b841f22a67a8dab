// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <cstdint>

#include "base/sandbox/control_group.hpp"
#include "base/sandbox/sandbox.hpp"

namespace catena::sandbox {

/// Address space of a process beyond its private memory and the memory passed to it: for code, files, unused
/// reservations of allocators, and memory passed later.
constexpr std::uint64_t kReservedBytes = std::uint64_t{2} << 30U;

/// Sets the limits of `options`, and the CPUs, for the first process of a sandbox; its children inherit them.
/// Unavailable with the system's reason.
Status limit_process(pid_t process, SandboxOptions const& options);

/// Limits for a control group of the process. A process within the intended limits of limit_process() never reaches
/// them. Memory to be shared with it later must be added then, by ControlGroup::allow_more().
GroupLimits group_limits(SandboxOptions const& options);

}  // namespace catena::sandbox
