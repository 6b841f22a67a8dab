// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/cost_model.hpp"

#include <span>

/// Fits the coefficients of a CostModel to measured times.
///
/// Every fit here minimizes the sum of relative errors, |fitted - measured| / measured. Times span four orders of
/// magnitude, so errors are relative to a time. They are not squared, so a time disturbed by another process has no
/// effect as long as the others agree (least absolute deviations: Bloomfield and Steiger, 1983). Such a fit goes
/// through as many of the points as it has coefficients, so all candidates are tried: exact, and at most quadratic in a
/// dozen points. No coefficient is ever negative.
///
/// Thread rule: pure functions, any thread. Precondition of all: every y, and every time, is above 0.
namespace catena::plan {

struct Point {
  double x;
  double y;
};

/// y = intercept + slope * x.
struct Line {
  double intercept = 0;
  double slope = 0;
};
/// Both coefficients are 0 without points; one point gives a line through 0.
Line fit_line(std::span<const Point> points);

/// y = max(least, slope * x): the time of a packet over its bytes.
struct Breakpoint {
  double least = 0;
  double slope = 0;
};
Breakpoint fit_breakpoint(std::span<const Point> points);

/// The slope of y = slope * x: the median of y / x.
double fit_ratio(std::span<const Point> points);

/// One measured transfer.
struct Timing {
  double packets = 0;
  double bytes = 0;  ///< per packet
  double ns = 0;     ///< of the transfer
};

/// The measurements of one method in one direction.
struct Timings {
  std::span<const Timing> frames;     ///< alone: several packet counts of the smallest size, all sizes of one count
  std::span<const Timing> fields;     ///< alone: one header field of several packet counts; may be empty
  std::span<const Timing> both_ways;  ///< large frames with the other direction equally busy; may be empty
};

/// Coefficients of a method whose cost depends on bytes alone: per transfer and per byte from the line over
/// the bytes of a transfer. With `both_ways` the cost per byte is fitted to these: a chain always moves both ways.
MethodCost fit_bulk(Timings const& timings);

/// Coefficients of a method that moves packet by packet:
///   per transfer        the intercept of the line over the packet counts of the smallest size
///   per packet, byte    max(least, per_byte * bytes) over the sizes of the largest packet count, without the former
///   per packet, fields  the slope over the packet counts of `fields`
/// `both_ways` as above, for the bytes alone.
MethodCost fit_packets(Timings const& timings);

}  // namespace catena::plan
