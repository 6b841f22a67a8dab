// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"

#include <cstdint>
#include <span>
#include <string_view>

/// The envelope around every compiled program. Drivers read beyond a truncated program or crash on a damaged one, so
/// they only receive programs with a valid length and checksum.
namespace catena::device {

/// The content of the envelope, which selects the driver call that loads it.
enum class BinaryKind : std::uint32_t {
  kCubin = 1,         ///< CUDA: machine code for one architecture
  kDeviceBinary = 2,  ///< OpenCL: the driver's output for C++ source or SPIR-V
  kBitcode = 3,       ///< OpenCL: LLVM bitcode for spir64, compiled further by the driver (PoCL)
};
std::string_view to_string(BinaryKind kind);

struct BinaryView {
  BinaryKind kind;
  std::span<const std::byte> payload;  ///< into the bytes given to unwrap()
};

Binary wrap(BinaryKind kind, std::span<const std::byte> payload);

/// InvalidArgument if the bytes are not an envelope, are truncated or were changed.
Result<BinaryView> unwrap(std::span<const std::byte> binary);

}  // namespace catena::device
