// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

/// Small charts of the pages of benchmarks, as data in results.json: tools/plot draws them. Thread rule: pure
/// functions, any thread.
namespace catena::bench {

/// A value and how far repeats spread around it.
struct Bar {
  double value = 0;
  double low = 0;  ///< no whisker where low == high
  double high = 0;
};

struct BarSeries {
  std::string name;
  std::vector<Bar> bars;  ///< one for each label
};

struct BarChart {
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<std::string> labels;
  std::vector<BarSeries> series;
  bool stacked = false;  ///< the series of a label one upon the other, else side by side
};

/// {"kind":"bars", "title", "x_title", "y_title", "labels", "stacked",
/// "series":[{"name","bars":[[value,low,high]..]}]}; null if no bar is above 0. Values that are no finite number, or
/// negative, count as 0.
nlohmann::json to_json(BarChart const& chart);

struct LineSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x and y, in the order in which they are joined
};

struct LineChart {
  std::string title;
  std::string x_title;  ///< the axis is logarithmic, so points with x <= 0 are left out
  std::string y_title;
  std::vector<LineSeries> series;
};

/// {"kind":"lines", "title", "x_title", "y_title", "series":[{"name","points":[[x,y]..]}]}; null without points. Points
/// that are no finite numbers are left out.
nlohmann::json to_json(LineChart const& chart);

/// From `begin` to `end`, of one of the chart's kinds.
struct TimeBox {
  std::size_t kind = 0;
  double begin = 0;
  double end = 0;
};

struct TimeRow {
  std::string name;
  std::vector<TimeBox> boxes;  ///< later ones are drawn upon earlier ones
};

struct TimeChart {
  std::string title;
  std::string x_title;
  std::vector<std::string> kinds;
  double length = 0;  ///< the horizontal axis goes from 0 to here
  std::vector<TimeRow> rows;
};

/// {"kind":"times", "title", "x_title", "kinds", "length", "rows":[{"name","boxes":[[kind,begin,end]..]}]}; null
/// without boxes. Boxes are cut at the ends of the axis; those wholly outside, of no kind that there is, or with a
/// border that is no finite number are left out.
nlohmann::json to_json(TimeChart const& chart);

}  // namespace catena::bench
