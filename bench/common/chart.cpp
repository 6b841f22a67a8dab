// SPDX-License-Identifier: Apache-2.0
#include "bench/common/chart.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace catena::bench {
namespace {

using nlohmann::json;

double non_negative(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

}  // namespace

json to_json(BarChart const& chart) {
  json series = json::array();
  bool is_empty = true;
  for (BarSeries const& one : chart.series) {
    json bars = json::array();
    for (Bar const& bar : one.bars) {
      is_empty &= non_negative(bar.value) == 0;
      bars.push_back({non_negative(bar.value), non_negative(bar.low), non_negative(bar.high)});
    }
    series.push_back({{"name", one.name}, {"bars", std::move(bars)}});
  }
  if (is_empty) {
    return nullptr;
  }
  return {
      {"kind", "bars"},         {"title", chart.title},     {"x_title", chart.x_title},   {"y_title", chart.y_title},
      {"labels", chart.labels}, {"stacked", chart.stacked}, {"series", std::move(series)}};
}

json to_json(LineChart const& chart) {
  json series = json::array();
  for (LineSeries const& one : chart.series) {
    json points = json::array();
    for (auto const& [x, y] : one.points) {
      if (std::isfinite(x) && std::isfinite(y) && x > 0) {
        points.push_back({x, y});
      }
    }
    if (!points.empty()) {
      series.push_back({{"name", one.name}, {"points", std::move(points)}});
    }
  }
  if (series.empty()) {
    return nullptr;
  }
  return {{"kind", "lines"},
          {"title", chart.title},
          {"x_title", chart.x_title},
          {"y_title", chart.y_title},
          {"series", std::move(series)}};
}

json to_json(TimeChart const& chart) {
  json rows = json::array();
  bool is_empty = true;
  for (TimeRow const& row : chart.rows) {
    json boxes = json::array();
    for (TimeBox const& box : row.boxes) {
      const double begin = std::max(box.begin, 0.0);
      const double end = std::min(box.end, chart.length);
      if (std::isfinite(box.begin) && std::isfinite(box.end) && begin < end && box.kind < chart.kinds.size()) {
        boxes.push_back({box.kind, begin, end});
        is_empty = false;
      }
    }
    rows.push_back({{"name", row.name}, {"boxes", std::move(boxes)}});
  }
  if (is_empty) {
    return nullptr;
  }
  return {{"kind", "times"},      {"title", chart.title},   {"x_title", chart.x_title},
          {"kinds", chart.kinds}, {"length", chart.length}, {"rows", std::move(rows)}};
}

}  // namespace catena::bench
