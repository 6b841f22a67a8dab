// SPDX-License-Identifier: Apache-2.0
#include "bench/common/spread.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace catena::bench {

Spread spread_of(std::vector<double> values) {
  if (values.empty()) {
    return {};
  }
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

nlohmann::ordered_json to_json(Spread const& spread) {
  return {{"median", spread.median}, {"min", spread.low}, {"max", spread.high}};
}

}  // namespace catena::bench
