// SPDX-License-Identifier: Apache-2.0
#include "bench/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace catena::bench {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 360;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 60;
constexpr double kBottom = 55;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kPlotHeight = kHeight - kTop - kBottom;
/// Okabe and Ito's palette, which the colour-blind can tell apart.
constexpr std::array<const char*, 7> kColours{"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                              "#56b4e9", "#d55e00", "#f0e442"};

std::string escaped(std::string const& text) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

double usable(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

/// The distance of about five ticks from 0 to `most`: 1, 2 or 5 times a power of ten.
double tick_for(double most) {
  constexpr double kTicks = 5;
  const double raw = most / kTicks;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) {
      return factor * power;
    }
  }
  return 10 * power;
}

/// A vertical axis from 0.
class Axis {
 public:
  explicit Axis(double most) : tick_(tick_for(most > 0 ? most : 1)), ticks_(std::max(1.0, std::ceil(most / tick_))) {}
  double y(double value) const { return kTop + kPlotHeight * (1 - value / (tick_ * ticks_)); }
  double tick() const { return tick_; }
  int ticks() const { return static_cast<int>(ticks_); }

 private:
  double tick_;
  double ticks_;
};

class Svg {
 public:
  explicit Svg(double height = kHeight) {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>\n",
        kWidth, height, kWidth, height);
  }
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  void text(double x, double y, const char* anchor, std::string const& words, int rotate = 0, int size = 12) {
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\"", x, y, anchor, size);
    if (rotate != 0) {
      add(" transform=\"rotate({} {:.1f} {:.1f})\"", rotate, x, y);
    }
    add(">{}</text>\n", escaped(words));
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2, y2, colour);
  }
  void rectangle(double x, double y, double width, double height, const char* colour) {
    add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y, width, height,
        colour);
  }
  void frame(std::string const& title, std::string const& x_title, std::string const& y_title, Axis const& axis) {
    text(kWidth / 2, 20, "middle", title, 0, 15);
    text(kLeft + kPlotWidth / 2, kHeight - 12, "middle", x_title);
    text(16, kTop + kPlotHeight / 2, "middle", y_title, -90);
    for (int i = 0; i <= axis.ticks(); ++i) {
      const double value = i * axis.tick();
      line(kLeft, axis.y(value), kLeft + kPlotWidth, axis.y(value), i == 0 ? "#000000" : "#dddddd");
      text(kLeft - 6, axis.y(value) + 4, "end", fmt::format("{:.6g}", value));
    }
  }
  void legend(std::vector<std::string> const& names) {
    double x = kLeft;
    for (std::size_t i = 0; i < names.size(); ++i) {
      constexpr double kLetter = 7;
      rectangle(x, 32, 12, 12, kColours[i % kColours.size()]);
      text(x + 16, 42, "start", names[i]);
      x += 34 + kLetter * static_cast<double>(names[i].size());
    }
  }
  std::string take() {
    text_ += "</svg>\n";
    return std::move(text_);
  }

 private:
  std::string text_;
};

template <typename Series>
std::vector<std::string> names_of(std::vector<Series> const& series) {
  std::vector<std::string> names;
  for (Series const& entry : series) {
    names.push_back(entry.name);
  }
  return names;
}

Bar bar_at(BarSeries const& series, std::size_t label) {
  if (label >= series.bars.size()) {
    return {};
  }
  Bar const& bar = series.bars[label];
  return {usable(bar.value), usable(bar.low), usable(bar.high)};
}

double highest(BarChart const& chart) {
  double most = 0;
  for (std::size_t label = 0; label < chart.labels.size(); ++label) {
    double sum = 0;
    for (BarSeries const& series : chart.series) {
      const Bar bar = bar_at(series, label);
      sum += bar.value;
      most = std::max({most, bar.value, chart.stacked ? sum : bar.high});
    }
  }
  return most;
}

}  // namespace

std::string to_svg(BarChart const& chart) {
  Svg svg;
  const Axis axis(highest(chart));
  svg.frame(chart.title, chart.x_title, chart.y_title, axis);
  svg.legend(names_of(chart.series));
  const double group = kPlotWidth / static_cast<double>(std::max<std::size_t>(1, chart.labels.size()));
  const double columns = chart.stacked ? 1 : static_cast<double>(std::max<std::size_t>(1, chart.series.size()));
  const double width = group * 0.8 / columns;
  for (std::size_t label = 0; label < chart.labels.size(); ++label) {
    const double left = kLeft + group * (static_cast<double>(label) + 0.1);
    double below = 0;
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      const Bar bar = bar_at(chart.series[i], label);
      const double x = chart.stacked ? left : left + width * static_cast<double>(i);
      const double top = axis.y(below + bar.value);
      svg.rectangle(x, top, width - 1, axis.y(below) - top, kColours[i % kColours.size()]);
      if (!chart.stacked && bar.high > bar.low) {
        svg.line(x + width / 2, axis.y(bar.low), x + width / 2, axis.y(bar.high), "#000000");
      }
      below += chart.stacked ? bar.value : 0;
    }
    svg.text(left + group * 0.4, kTop + kPlotHeight + 18, "middle", chart.labels[label]);
  }
  return svg.take();
}

std::string to_svg(LineChart const& chart) {
  double least_x = INFINITY;
  double most_x = 0;
  double most_y = 0;
  for (LineSeries const& series : chart.series) {
    for (auto const& [x, y] : series.points) {
      if (usable(x) > 0) {
        least_x = std::min(least_x, x);
        most_x = std::max(most_x, x);
        most_y = std::max(most_y, usable(y));
      }
    }
  }
  if (most_x == 0) {
    least_x = most_x = 1;
  }
  const double first = std::floor(std::log10(least_x));
  const double last = std::max(first + 1, std::ceil(std::log10(most_x)));
  const auto at_x = [&](double x) { return kLeft + kPlotWidth * (std::log10(x) - first) / (last - first); };
  Svg svg;
  const Axis axis(most_y);
  svg.frame(chart.title, chart.x_title, chart.y_title, axis);
  svg.legend(names_of(chart.series));
  for (double power = first; power <= last; power += 1) {
    const double x = at_x(std::pow(10.0, power));
    svg.line(x, kTop, x, kTop + kPlotHeight, "#dddddd");
    svg.text(x, kTop + kPlotHeight + 18, "middle", fmt::format("{:.10g}", std::pow(10.0, power)));
  }
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    svg.add("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"{}\" points=\"", kColours[i % kColours.size()]);
    for (auto const& [x, y] : chart.series[i].points) {
      if (usable(x) > 0) {
        svg.add("{:.1f},{:.1f} ", at_x(x), axis.y(usable(y)));
      }
    }
    svg.add("\"/>\n");
  }
  return svg.take();
}

std::string to_svg(TimeChart const& chart) {
  constexpr double kNames = 110;  // width of the column with the rows' names
  constexpr double kRow = 22;
  constexpr double kBox = 16;
  constexpr double kTimesWidth = kWidth - kNames - kRight;
  const double length = usable(chart.length) > 0 ? chart.length : 1;
  const double bottom = kTop + kRow * static_cast<double>(chart.rows.size());
  const auto at_x = [length](double time) { return kNames + kTimesWidth * std::clamp(time / length, 0.0, 1.0); };
  Svg svg(bottom + kBottom);
  svg.text(kWidth / 2, 20, "middle", chart.title, 0, 15);
  svg.legend(chart.kinds);
  const double tick = tick_for(length);
  for (int i = 0; i * tick <= length; ++i) {
    const double x = at_x(i * tick);
    svg.line(x, kTop, x, bottom, "#dddddd");
    svg.text(x, bottom + 18, "middle", fmt::format("{:.6g}", i * tick));
  }
  svg.text(kNames + kTimesWidth / 2, bottom + kBottom - 12, "middle", chart.x_title);
  double top = kTop + (kRow - kBox) / 2;
  for (TimeRow const& row : chart.rows) {
    svg.text(kNames - 6, top + kBox - 4, "end", row.name);
    for (TimeBox const& box : row.boxes) {
      const bool is_drawn = box.kind < chart.kinds.size() && std::isfinite(box.begin) && std::isfinite(box.end) &&
                            box.begin <= box.end && box.end >= 0 && box.begin <= length;
      if (is_drawn) {
        svg.rectangle(at_x(box.begin), top, at_x(box.end) - at_x(box.begin), kBox,
                      kColours[box.kind % kColours.size()]);
      }
    }
    top += kRow;
  }
  return svg.take();
}

}  // namespace catena::bench
