// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/request.hpp"

/// `catena-bench isoptr`: the cost of pointer checks in kernels, as in figure 15 of "G-NET: Effective GPU Sharing in
/// NFV Systems" (NSDI 2018). Runs the same kernels with and without checks, in turn in one process.
namespace catena::bench {

Part isoptr_part();

}  // namespace catena::bench
