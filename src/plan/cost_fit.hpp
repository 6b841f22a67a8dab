// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/cost_model.hpp"

#include <span>

/// From measured times to the coefficients of a CostModel.
///
/// Every fit here minimizes the sum of relative errors, |fitted - measured| / measured. Times span four orders of
/// magnitude, so errors count by their share of a time; and they are not squared, so one that another process disturbed
/// pulls nothing with it as long as the others agree (least absolute deviations: Bloomfield and Steiger, 1983). Such a
/// fit goes through as many of the points as it has coefficients, so all candidates are tried: exact, and at most
/// quadratic in a dozen points. No coefficient is ever negative.
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
/// Both coefficients are 0 without points; one point lies on a line through 0.
Line fit_line(std::span<const Point> points);

/// y = max(least, slope * x): the time of a packet over its bytes.
struct Knee {
  double least = 0;
  double slope = 0;
};
Knee fit_knee(std::span<const Point> points);

/// The slope of y = slope * x: the median of y / x.
double fit_ratio(std::span<const Point> points);

/// One measured transfer.
struct Timing {
  double packets = 0;
  double bytes = 0;  ///< of each packet
  double ns = 0;     ///< of the transfer
};

/// What was measured of one method in one direction.
struct Timings {
  std::span<const Timing> frames;     ///< alone: several packet counts of the smallest size, all sizes of one count
  std::span<const Timing> fields;     ///< alone: one header field of several packet counts; may be empty
  std::span<const Timing> both_ways;  ///< large frames while the other direction was as busy; may be empty
};

/// Coefficients of a method that moves bytes whatever they are (kStaged): per transfer and per byte from the line over
/// the bytes of a transfer. With `both_ways` the bytes cost what they cost there: a chain always moves both ways.
MethodCost fit_bulk(Timings const& timings);

/// Coefficients of a method that moves packet by packet (kStrided, kGather):
///   per transfer        where the line over the packet counts of the smallest size begins
///   per packet, byte    max(least, per_byte * bytes) over the sizes of the largest packet count, without the former
///   per packet, fields  the slope over the packet counts of `fields`
/// `both_ways` as above, for the bytes alone.
MethodCost fit_packets(Timings const& timings);

}  // namespace catena::plan
