// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/hostcopy/engine.hpp"

/// The copies of the TCP stack.
namespace catena::stack {

/// The copy engines of all rooms: `cpu`, `cpu-stream`, `dmadev`, `dmadev-skeleton`, and one by backend of devices. In
/// the order of messages.
std::vector<hostcopy::EngineKind> engine_table();

}  // namespace catena::stack
