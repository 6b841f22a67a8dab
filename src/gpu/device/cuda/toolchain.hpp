// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

/// NVRTC, NVIDIA's compiler as a library, opened at run time.
namespace catena::device::cuda {

/// OK if kernels can be compiled. Unavailable if NVRTC is missing: the text lists the searched places and how to fetch
/// it. Any thread.
Status check_toolchain();

}  // namespace catena::device::cuda
