// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/kernel/spec.hpp>

#include <memory>

#include "copy/launch_plan.hpp"
#include "device/device.hpp"

/// From an NF's kernel source and its plan to a loaded program.
namespace catena::kernel {

/// The source with the SDK's headers and the plan's macros, as the device compilers take it.
device::ProgramSource adapt(KernelSpec const& spec, copy::LaunchPlan const& plan);
/// program::build() of what adapt() makes. InvalidArgument: the spec or the plan is none.
Result<std::unique_ptr<device::Program>> build(device::Device& device, KernelSpec const& spec,
                                               copy::LaunchPlan const& plan);

}  // namespace catena::kernel
