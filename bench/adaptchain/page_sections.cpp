// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/page_sections.hpp"

namespace catena::bench {

Traced traced_of(Cell const& cell, std::string_view nf) {
  Traced traced;
  std::uint64_t packets = 0;
  for (Repeat const& repeat : cell.repeats) {
    if (LaunchTimes const* times = launches_of(repeat, nf); times != nullptr) {
      traced.launches += times->launches;
      packets += times->packets;
    }
  }
  if (traced.launches > 0) {
    traced.packets_each = static_cast<double>(packets) / static_cast<double>(traced.launches);
  }
  return traced;
}

std::string left_of(Cell const& cell) {
  constexpr double kReached = 0.98;
  const double left = gbps(cell).median;
  return fmt::format("{:.2f}{}", left, left < kReached * cell.offered_gbps ? " **saturated**" : "");
}

}  // namespace catena::bench
