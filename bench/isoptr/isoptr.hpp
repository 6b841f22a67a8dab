// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/request.hpp"

/// `catena-bench isoptr`: what the checks of pointers in kernels cost, beside figure 15 of "G-NET: Effective GPU
/// Sharing in NFV Systems" (NSDI 2018). The same kernels with their checks and without, in turn in one process.
namespace catena::bench {

Part isoptr_part();

}  // namespace catena::bench
