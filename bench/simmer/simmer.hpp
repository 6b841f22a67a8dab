// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/request.hpp"

/// `catena-bench simmer`: back-pressure compared with dropping rings, for chains whose NFs share a GPU, as in section 4
/// of "Simmer: Rate Proportional Scheduling to Reduce Packet Drops in vGPU Based NF Chains" (ICPP 2022).
namespace catena::bench {

/// The speed of each NF alone, from which loads are chosen, is measured when needed. NotFound if a program for NF
/// processes is missing.
Part simmer_part();

}  // namespace catena::bench
