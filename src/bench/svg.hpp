// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

/// Small charts as SVG 1.1 text, for the pages of benchmarks. Thread rule: pure functions, any thread.
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

/// The vertical axis starts at 0. Values that are no finite number, or negative, count as 0.
std::string to_svg(BarChart const& chart);

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

/// The vertical axis starts at 0, the horizontal one at the power of ten below the smallest x.
std::string to_svg(LineChart const& chart);

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

/// What happens when, a row below another. Boxes are cut at the ends of the axis; those wholly outside, of no kind that
/// there is, or with a border that is no finite number are left out. As high as its rows need.
std::string to_svg(TimeChart const& chart);

}  // namespace catena::bench
