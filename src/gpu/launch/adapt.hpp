// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/kernel/launch_params.hpp>
#include <catena/kernel/spec.hpp>

#include <cstdint>
#include <memory>

#include "gpu/copy/launch_plan.hpp"
#include "gpu/device/device.hpp"

/// From an NF's kernel source and its plan to a loaded program.
namespace catena::kernel {

/// Number of work-groups in a kernel's launches.
enum class Groups : std::uint8_t {
  kAsNeeded,  ///< as many as its packets need
  kAny,       ///< or fewer, each of which then takes the packets of several
};

/// Launch form of all kernels made by adapt(): launch buffer, out buffer, state, spill area, shared buffer.
inline constexpr device::LaunchForm kLaunchForm{.buffers = 5, .struct_bytes = sizeof(LaunchParams)};

/// The source with the SDK's headers and the plan's macros, for the device compilers.
device::ProgramSource adapt(KernelSpec const& spec, copy::LaunchPlan const& plan, Groups groups = Groups::kAsNeeded);
/// program::build() of the result of adapt(). InvalidArgument: the spec or the plan is invalid.
Result<std::unique_ptr<device::Program>> build(device::Device& device, KernelSpec const& spec,
                                               copy::LaunchPlan const& plan, Groups groups = Groups::kAsNeeded);

}  // namespace catena::kernel
