// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <cstdint>

#include "sandbox/control_group.hpp"
#include "sandbox/sandbox.hpp"

namespace catena::sandbox {

/// Addresses that a process has beyond its private memory and what it is given: for code, files, what allocators
/// reserve without using it, and memory that it is given later.
constexpr std::uint64_t kReservedBytes = std::uint64_t{2} << 30U;

/// Sets the limits of `options` for the first process of a sandbox, which those that it starts inherit, and its CPUs.
/// Unavailable with what the system says.
Status limit_process(pid_t process, SandboxOptions const& options);

/// Limits for a control group of the process, which no process reaches that keeps to those of limit_process() as they
/// are meant. Memory that it is to share with others later has to be allowed then.
GroupLimits group_limits(SandboxOptions const& options);

}  // namespace catena::sandbox
