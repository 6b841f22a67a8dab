// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace catena::bench {

/// An interval from `begin` to `end`, with one of the chart's kinds.
struct TimeBox {
  std::size_t kind = 0;
  double begin = 0;
  double end = 0;
};

struct TimeRow {
  std::string name;
  std::vector<TimeBox> boxes;  ///< later boxes are drawn over earlier ones
};

/// {"kinds", "length", "rows": [{"name", "boxes": [[kind, begin, end]..]}]}: a chart from 0 to `length`.
inline nlohmann::ordered_json to_json(std::vector<TimeRow> const& rows, std::vector<std::string> const& kinds,
                                      double length) {
  nlohmann::ordered_json drawn = nlohmann::ordered_json::array();
  for (TimeRow const& row : rows) {
    nlohmann::ordered_json boxes = nlohmann::ordered_json::array();
    for (TimeBox const& box : row.boxes) {
      boxes.push_back({box.kind, box.begin, box.end});
    }
    drawn.push_back({{"name", row.name}, {"boxes", std::move(boxes)}});
  }
  return {{"kinds", kinds}, {"length", length}, {"rows", std::move(drawn)}};
}

}  // namespace catena::bench
