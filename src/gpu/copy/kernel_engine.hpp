// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/hostcopy/engine.hpp"
#include "gpu/device/device.hpp"

namespace catena::copy {

/// A copy engine: a kernel of `device` moves bytes within registered host memory. Jobs are launched in batches of 32,
/// or of fewer at a poll unless another came since the last one; they complete in order. A launch reaches kMoveWindows
/// memories, so jobs of more are launched apart; the number of registered memories, each of whole pages, has no limit.
/// Errors: as program::build(); Unimplemented: kernels of the device cannot access host memory.
Result<std::unique_ptr<hostcopy::Engine>> make_kernel_engine(std::shared_ptr<device::Device> device);

/// A kind for each backend, by its name: the first device of it. Static storage.
std::span<const hostcopy::EngineKind> kernel_engine_kinds();

}  // namespace catena::copy
