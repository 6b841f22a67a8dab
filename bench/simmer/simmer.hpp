// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/request.hpp"

/// `catena-bench simmer`: back-pressure beside rings that drop, for chains whose NFs share a GPU, beside section 4 of
/// "Simmer: Rate Proportional Scheduling to Reduce Packet Drops in vGPU Based NF Chains" (ICPP 2022).
namespace catena::bench {

/// What NFs do alone, by which loads are chosen, is measured where it is needed. NotFound where a program for the
/// processes of NFs is missing.
Part simmer_part();

}  // namespace catena::bench
