// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/chrome_trace.hpp"

#include <span>
#include <string>
#include <vector>

namespace catena::bench {

/// What may limit a chain, and the share of a run's time in which it had something to do, 0 to 1.
struct BusyShare {
  std::string what;
  double share = 0;
};

/// Of a run's spans: "moves", in which something crosses the bus for any NF, "kernels", in which one runs, then each
/// stage of the host by its name. Moves that run side by side count once. Empty without spans. Pure.
std::vector<BusyShare> busy_shares(std::span<const runtime::StageTrace> stages);

/// The one with the largest share; null where there is none.
BusyShare const* busiest(std::span<const BusyShare> shares);

}  // namespace catena::bench
