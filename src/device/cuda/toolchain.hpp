// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

/// NVRTC, NVIDIA's compiler as a library, opened at run time.
namespace catena::device::cuda {

/// OK if kernels can be compiled. Unavailable where NVRTC is missing: the text says where it was searched for and how
/// to fetch it. Any thread.
Status check_toolchain();

}  // namespace catena::device::cuda
