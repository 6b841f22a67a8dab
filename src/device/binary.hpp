// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"

#include <cstdint>
#include <span>
#include <string_view>

/// The envelope around every compiled program. Drivers read beyond a truncated program or crash on a damaged one, so
/// nothing is handed to them that does not carry its length and checksum.
namespace catena::device {

/// What the envelope holds, and with that the driver call that loads it.
enum class BinaryKind : std::uint32_t {
  kCubin = 1,         ///< CUDA: machine code for one architecture
  kDeviceBinary = 2,  ///< OpenCL: what the driver made of C++ source or SPIR-V
  kBitcode = 3,       ///< OpenCL: LLVM bitcode for spir64, which the driver compiles further (PoCL)
};
std::string_view to_string(BinaryKind kind);

struct BinaryView {
  BinaryKind kind;
  std::span<const std::byte> payload;  ///< into the bytes given to unwrap()
};

Binary wrap(BinaryKind kind, std::span<const std::byte> payload);

/// InvalidArgument if the bytes are no envelope, are cut short or were changed.
Result<BinaryView> unwrap(std::span<const std::byte> binary);

}  // namespace catena::device
