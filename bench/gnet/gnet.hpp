// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/request.hpp"

/// `catena-bench gnet`: GPU sharing among the NFs of a chain, as in section 7 of "G-NET: Effective GPU Sharing in NFV
/// Systems" (NSDI 2018). Runs the four sharing variants in turn in one process, over S_a to S_d.
namespace catena::bench {

/// Every run first measures NF costs. Additional errors: as profile::measure_nfs().
Part gnet_part();

}  // namespace catena::bench
