// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/request.hpp"

/// `catena-bench gnet`: how the NFs of a chain share a GPU, beside section 7 of "G-NET: Effective GPU Sharing in NFV
/// Systems" (NSDI 2018): the four ways in turn in one process, over S_a to S_d.
namespace catena::bench {

/// Measures first what NFs cost, in every run. Errors: as profile::measure_nfs(), too.
Part gnet_part();

}  // namespace catena::bench
