// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <vector>

namespace catena::bench {

/// Median, smallest and largest of the repeats of a measurement.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};
/// All 0 without values.
Spread spread_of(std::vector<double> values);
nlohmann::ordered_json to_json(Spread const& spread);

}  // namespace catena::bench
