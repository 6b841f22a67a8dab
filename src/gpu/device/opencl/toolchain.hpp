// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"

#include <cstddef>
#include <string>
#include <vector>

/// The compilers of this machine from C++ for OpenCL to a format that drivers load: clang and llvm-spirv.
namespace catena::device::opencl {

/// Oldest clang with C++ for OpenCL 2021.
inline constexpr int kOldestClang = 14;

struct Toolchain {
  std::string clang;       ///< absolute path
  int version = 0;         ///< major version
  std::string llvm_spirv;  ///< absolute path of the translator of the same version; empty if missing
};

/// Searches $PATH for clang-<newest> down to clang-14, then for a plain clang of a version in this range. Unavailable
/// if no clang is found, or if `newest` is older than clang-14; the text names the packages to install.
Result<Toolchain> find_toolchain(int newest);

/// Compiles to LLVM bitcode for spir64. InvalidArgument with clang's messages if the source is wrong.
Result<std::vector<std::byte>> compile_bitcode(Toolchain const& toolchain, ProgramSource const& source);

/// Compiles to SPIR-V. Errors as compile_bitcode(); Unavailable if the toolchain has no llvm-spirv.
Result<std::vector<std::byte>> compile_spirv(Toolchain const& toolchain, ProgramSource const& source);

}  // namespace catena::device::opencl
