// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <filesystem>

/// NVRTC, NVIDIA's compiler as a library, opened at run time.
namespace catena::device::cuda {

/// OK if kernels can be compiled. Unavailable if NVRTC is missing: the text lists the searched places and how to fetch
/// it. Any thread.
Status check_toolchain();

/// The folder whose lib/ or lib64/ has NVRTC, as for CATENA_CUDA_HOME; empty if no folder has, or the loader knows the
/// place.
std::filesystem::path toolchain_home();

}  // namespace catena::device::cuda
