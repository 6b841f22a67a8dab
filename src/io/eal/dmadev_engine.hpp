// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/hostcopy/engine.hpp"

namespace catena::eal {

/// Copy engines of DPDK's dmadev: `dmadev` is the next free device (drivers ioat and idxd, for Intel's
/// CBDMA and DSA; bind the device to vfio-pci and pass `-a ADDRESS` to the EAL), `dmadev-skeleton` a thread of DPDK's
/// for tests. Opening an engine starts the EAL, where it does not run. Jobs complete in order. A device other than the
/// skeleton reaches registered memory alone. A halted ioat channel works again only after a restart of the machine.
/// Static storage.
std::span<const hostcopy::EngineKind> dmadev_engine_kinds();

}  // namespace catena::eal
