// SPDX-License-Identifier: Apache-2.0
#include "bench/common/spread.hpp"

#include <fmt/format.h>

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

std::string text_of(Spread const& spread, double scale) {
  return fmt::format("{:.2f} ({:.2f} .. {:.2f})", spread.median * scale, spread.low * scale, spread.high * scale);
}

}  // namespace catena::bench
