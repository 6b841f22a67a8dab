// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/chrome_trace.hpp"

#include <span>
#include <string>
#include <vector>

namespace catena::bench {

/// A possible bottleneck of a chain, and its busy share of a run's time, 0 to 1.
struct BusyShare {
  std::string what;
  double share = 0;
};

/// Busy shares of a run's spans: "moves" (any NF's transfer crosses the bus), "kernels" (any kernel runs), then each
/// host stage by its name. Concurrent moves count once. Empty without spans. Pure.
std::vector<BusyShare> busy_shares(std::span<const runtime::StageTrace> stages);

/// The entry with the largest share; null if `shares` is empty.
BusyShare const* busiest(std::span<const BusyShare> shares);

}  // namespace catena::bench
