// SPDX-License-Identifier: Apache-2.0
#include "plan/cost_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace catena::plan {
namespace {

/// The candidate with the least sum of relative errors; the first one if equal.
template <typename Candidate, typename Value>
Candidate best_of(std::vector<Candidate> const& candidates, std::span<const Point> points, Value const& value) {
  Candidate best{};
  double least = std::numeric_limits<double>::infinity();
  for (Candidate const& candidate : candidates) {
    double error = 0;
    for (Point const& point : points) {
      error += std::abs(value(candidate, point.x) - point.y) / point.y;
    }
    if (error < least) {
      least = error;
      best = candidate;
    }
  }
  return best;
}

/// (bytes of a transfer, ns without what each transfer costs), where something is left.
std::vector<Point> beyond(double per_transfer_ns, std::span<const Timing> timings) {
  std::vector<Point> points;
  for (Timing const& timing : timings) {
    if (timing.ns > per_transfer_ns) {
      points.push_back({timing.packets * timing.bytes, timing.ns - per_transfer_ns});
    }
  }
  return points;
}

void apply_both_ways(std::span<const Timing> both_ways, MethodCost& cost) {
  if (const std::vector<Point> points = beyond(cost.per_transfer_ns, both_ways); !points.empty()) {
    cost.per_byte_ns = fit_ratio(points);
  }
}

}  // namespace

Line fit_line(std::span<const Point> points) {
  std::vector<Line> candidates;
  for (std::size_t i = 0; i < points.size(); ++i) {
    candidates.push_back({points[i].y, 0});
    if (points[i].x > 0) {
      candidates.push_back({0, points[i].y / points[i].x});
    }
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      const double slope = (points[j].y - points[i].y) / (points[j].x - points[i].x);
      const double intercept = points[i].y - slope * points[i].x;
      if (std::isfinite(slope) && slope >= 0 && intercept >= 0) {
        candidates.push_back({intercept, slope});
      }
    }
  }
  if (points.size() == 1 && points.front().x > 0) {
    return {0, points.front().y / points.front().x};
  }
  return best_of(candidates, points, [](Line const& line, double x) { return line.intercept + line.slope * x; });
}

Breakpoint fit_breakpoint(std::span<const Point> points) {
  std::vector<Breakpoint> candidates;
  for (Point const& steep : points) {
    if (steep.x <= 0) {
      continue;
    }
    const double slope = steep.y / steep.x;
    candidates.push_back({0, slope});
    for (Point const& flat : points) {
      candidates.push_back({flat.y, slope});
    }
  }
  return best_of(candidates, points, [](Breakpoint const& breakpoint, double x) {
    return std::max(breakpoint.least, breakpoint.slope * x);
  });
}

double fit_ratio(std::span<const Point> points) {
  std::vector<double> ratios;
  for (Point const& point : points) {
    if (point.x > 0) {
      ratios.push_back(point.y / point.x);
    }
  }
  if (ratios.empty()) {
    return 0;
  }
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

MethodCost fit_bulk(Timings const& timings) {
  std::vector<Point> points;
  for (Timing const& timing : timings.frames) {
    points.push_back({timing.packets * timing.bytes, timing.ns});
  }
  const Line line = fit_line(points);
  MethodCost cost{.per_transfer_ns = line.intercept, .per_byte_ns = line.slope};
  apply_both_ways(timings.both_ways, cost);
  return cost;
}

MethodCost fit_packets(Timings const& timings) {
  MethodCost cost;
  double smallest = std::numeric_limits<double>::infinity();
  double most = 0;
  for (Timing const& timing : timings.frames) {
    smallest = std::min(smallest, timing.bytes);
    most = std::max(most, timing.packets);
  }
  std::vector<Point> counts;
  for (Timing const& timing : timings.frames) {
    if (timing.bytes == smallest) {
      counts.push_back({timing.packets, timing.ns});
    }
  }
  cost.per_transfer_ns = fit_line(counts).intercept;
  std::vector<Point> sizes;
  for (Timing const& timing : timings.frames) {
    if (timing.packets == most && timing.ns > cost.per_transfer_ns) {
      sizes.push_back({timing.bytes, (timing.ns - cost.per_transfer_ns) / timing.packets});
    }
  }
  const Breakpoint breakpoint = fit_breakpoint(sizes);
  cost.per_packet_ns = breakpoint.least;
  cost.per_byte_ns = breakpoint.slope;
  std::vector<Point> fields;
  for (Timing const& timing : timings.fields) {
    fields.push_back({timing.packets, timing.ns});
  }
  cost.per_packet_fields_ns = fit_line(fields).slope;
  apply_both_ways(timings.both_ways, cost);
  return cost;
}

}  // namespace catena::plan
