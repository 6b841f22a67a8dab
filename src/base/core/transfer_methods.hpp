// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/transfer.hpp"

#include <array>
#include <cstddef>
#include <string_view>

/// The table of transfer methods, and names of directions and methods in plans, profiles and JSON.
namespace catena {

/// All methods, in the order of their numbers. The first one is kStaged, which every device supports.
inline constexpr std::array kTransferMethods{
#define CATENA_METHOD(method, name, path) TransferMethod::method,
    CATENA_TRANSFER_METHODS(CATENA_METHOD)
#undef CATENA_METHOD
};
static_assert(kTransferMethods.front() == TransferMethod::kStaged);

constexpr std::string_view to_string(Direction direction) { return direction == Direction::kToDevice ? "h2d" : "d2h"; }

constexpr std::string_view to_string(TransferMethod method) {
  constexpr std::array<std::string_view, kTransferMethods.size()> kNames{
#define CATENA_METHOD(method, name, path) name,
      CATENA_TRANSFER_METHODS(CATENA_METHOD)
#undef CATENA_METHOD
  };
  return kNames[static_cast<std::size_t>(method)];
}

constexpr KernelPath kernel_path(TransferMethod method) {
  constexpr std::array kPaths{
#define CATENA_METHOD(method, name, path) KernelPath::path,
      CATENA_TRANSFER_METHODS(CATENA_METHOD)
#undef CATENA_METHOD
  };
  return kPaths[static_cast<std::size_t>(method)];
}

/// Whether the bytes are in the launch's own buffer, which is copied as a whole.
constexpr bool uses_staging(TransferMethod method) { return kernel_path(method) == KernelPath::kStaging; }

/// Whether kernels access the packet pool, which must be mapped on the device.
constexpr bool needs_mapped_pool(TransferMethod method) { return kernel_path(method) == KernelPath::kPool; }

}  // namespace catena
