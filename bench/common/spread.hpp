// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace catena::bench {

inline constexpr double kNsPerUs = 1000;

/// Median, smallest and largest of the repeats of a measurement.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};
/// All 0 if `values` is empty.
Spread spread_of(std::vector<double> values);
/// "2.00 (1.50 .. 3.00)", each times `scale`.
std::string text_of(Spread const& spread, double scale = 1);

}  // namespace catena::bench
