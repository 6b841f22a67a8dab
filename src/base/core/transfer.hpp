// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Transfers between host and device. Kernels include this file.
namespace catena {

enum class Direction : unsigned { kToDevice, kToHost };

/// The work of a transfer kernel on the bytes of a transfer method.
enum class KernelPath : unsigned {
  kStaging,  ///< copies between the launch's own buffer and the shared buffer; a StagingExtent per row gives the place
  kNone,     ///< none: copy engines move the bytes
  kPool,     ///< copies between the packet pool, mapped on the device, and the shared buffer
};

/// How bytes cross the bus: row(method, name, path). The other halves of a row are plan::MethodTraits in
/// src/plan/methods/ and copy::MethodMover in src/gpu/copy/methods/, each a constant with the name of the method.
// clang-format off
#define CATENA_TRANSFER_METHODS(row) \
  row(kStaged, "staged", kStaging)   \
  row(kStrided, "strided", kNone)    \
  row(kGather, "gather", kPool)
// clang-format on

enum class TransferMethod : unsigned {
#define CATENA_METHOD(method, name, path) method,
  CATENA_TRANSFER_METHODS(CATENA_METHOD)
#undef CATENA_METHOD
};

}  // namespace catena
