// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/kernel/launch_params.hpp>
#include <catena/kernel/spec.hpp>

#include <cstdint>
#include <memory>

#include "copy/launch_plan.hpp"
#include "device/device.hpp"

/// From an NF's kernel source and its plan to a loaded program.
namespace catena::kernel {

/// With how many work-groups a kernel may be launched.
enum class Groups : std::uint8_t {
  kAsNeeded,  ///< as many as its packets need
  kAny,       ///< or fewer, each of which then takes packets of several
};

/// How every kernel that adapt() makes is launched: launch buffer, out buffer, state, spill area, shared buffer.
inline constexpr device::LaunchForm kLaunchForm{.buffers = 5, .struct_bytes = sizeof(LaunchParams)};

/// The source with the SDK's headers and the plan's macros, as the device compilers take it.
device::ProgramSource adapt(KernelSpec const& spec, copy::LaunchPlan const& plan, Groups groups = Groups::kAsNeeded);
/// program::build() of what adapt() makes. InvalidArgument: the spec or the plan is none.
Result<std::unique_ptr<device::Program>> build(device::Device& device, KernelSpec const& spec,
                                               copy::LaunchPlan const& plan, Groups groups = Groups::kAsNeeded);

}  // namespace catena::kernel
