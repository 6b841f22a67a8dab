// SPDX-License-Identifier: Apache-2.0
#include "plan/cost_fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace catena::plan {
namespace {

constexpr double kCounts[] = {64, 256, 1024, 4096, 8192};
constexpr double kSizes[] = {64, 128, 256, 512, 1024, 1514};

TEST(FitLine, goes_through_points_that_lie_on_one) {
  const std::vector<Point> points{{1, 13}, {2, 16}, {10, 40}};
  const Line line = fit_line(points);
  EXPECT_DOUBLE_EQ(line.intercept, 10);
  EXPECT_DOUBLE_EQ(line.slope, 3);
}

TEST(FitLine, one_disturbed_point_pulls_nothing) {
  const std::vector<Point> points{{1, 13}, {2, 16}, {4, 2200}, {10, 40}, {100, 310}};
  const Line line = fit_line(points);
  EXPECT_DOUBLE_EQ(line.intercept, 10);
  EXPECT_DOUBLE_EQ(line.slope, 3);
}

TEST(FitLine, coefficients_are_never_negative) {
  const Line falling = fit_line(std::vector<Point>{{1, 30}, {2, 20}, {3, 20}});
  EXPECT_EQ(falling.slope, 0);
  EXPECT_EQ(falling.intercept, 20);
  // the best line of all would begin at -10
  const Line steep = fit_line(std::vector<Point>{{10, 10}, {20, 30}, {30, 50}});
  EXPECT_EQ(steep.intercept, 0);
  EXPECT_GT(steep.slope, 0);
}

TEST(FitLine, few_points) {
  EXPECT_EQ(fit_line({}).intercept, 0);
  EXPECT_EQ(fit_line({}).slope, 0);
  const Line through_one = fit_line(std::vector<Point>{{4, 12}});
  EXPECT_EQ(through_one.intercept, 0);
  EXPECT_EQ(through_one.slope, 3);
  const Line same_x = fit_line(std::vector<Point>{{4, 12}, {4, 12}});
  EXPECT_EQ(same_x.intercept + same_x.slope * 4, 12);
}

TEST(FitBreakpoint, finds_both_sides_of_the_knee) {
  std::vector<Point> points;
  for (const double bytes : kSizes) {
    points.push_back({bytes, std::max(3.0, 0.02 * bytes)});
  }
  const Breakpoint breakpoint = fit_breakpoint(points);
  EXPECT_DOUBLE_EQ(breakpoint.least, 3);
  EXPECT_DOUBLE_EQ(breakpoint.slope, 0.02);
}

TEST(FitBreakpoint, there_may_be_no_flat_part) {
  const Breakpoint breakpoint = fit_breakpoint(std::vector<Point>{{64, 32}, {128, 64}, {1024, 512}});
  EXPECT_DOUBLE_EQ(std::max(breakpoint.least, breakpoint.slope * 64), 32);
  EXPECT_DOUBLE_EQ(breakpoint.slope, 0.5);
}

TEST(FitRatio, is_the_median) {
  EXPECT_EQ(fit_ratio(std::vector<Point>{{10, 20}, {10, 30}, {10, 900}}), 3);
  EXPECT_EQ(fit_ratio({}), 0);
  EXPECT_EQ(fit_ratio(std::vector<Point>{{0, 20}}), 0);
}

/// Times that a machine with given coefficients would give, up to `noise` wrong each way.
class SyntheticTimes : public ::testing::Test {
 protected:
  SyntheticTimes() {
    for (const double packets : kCounts) {
      shapes_.push_back({packets, kSizes[0], 0});
      if (packets == std::end(kCounts)[-1]) {
        for (const double bytes : std::vector<double>(std::begin(kSizes) + 1, std::end(kSizes))) {
          shapes_.push_back({packets, bytes, 0});
        }
      }
    }
  }

  double disturbed(double ns, double noise) {
    return ns * std::uniform_real_distribution<double>(1 - noise, 1 + noise)(random_);
  }
  std::vector<Timing> frames(MethodCost const& cost, double noise) {
    std::vector<Timing> timings = shapes_;
    for (Timing& timing : timings) {
      const double each = std::max(cost.per_packet_ns, cost.per_byte_ns * timing.bytes);
      timing.ns = disturbed(cost.per_transfer_ns + timing.packets * each, noise);
    }
    return timings;
  }
  std::vector<Timing> fields(MethodCost const& cost, double noise) {
    std::vector<Timing> timings;
    for (const double packets : kCounts) {
      timings.push_back({packets, 4, disturbed(cost.per_transfer_ns + packets * cost.per_packet_fields_ns, noise)});
    }
    return timings;
  }

  std::vector<Timing> shapes_;
  std::mt19937 random_{20261121};  // NOLINT(cert-msc51-cpp): the same noise in every run
};

constexpr MethodCost kPackets{
    .per_transfer_ns = 2700, .per_packet_ns = 2.9, .per_packet_fields_ns = 1.4, .per_byte_ns = 0.0197};
constexpr MethodCost kBulk{.per_transfer_ns = 5000, .per_byte_ns = 0.2};

TEST_F(SyntheticTimes, coefficients_of_packets_come_back) {
  const auto of_frames = frames(kPackets, 0);
  const auto of_fields = fields(kPackets, 0);
  const MethodCost cost = fit_packets({of_frames, of_fields, {}});
  EXPECT_NEAR(cost.per_transfer_ns, kPackets.per_transfer_ns, 1e-6);
  EXPECT_NEAR(cost.per_packet_ns, kPackets.per_packet_ns, 1e-9);
  EXPECT_NEAR(cost.per_packet_fields_ns, kPackets.per_packet_fields_ns, 1e-9);
  EXPECT_NEAR(cost.per_byte_ns, kPackets.per_byte_ns, 1e-9);
}

TEST_F(SyntheticTimes, coefficients_of_bulk_copies_come_back) {
  const auto of_frames = frames(kBulk, 0);
  const MethodCost cost = fit_bulk({of_frames, {}, {}});
  EXPECT_NEAR(cost.per_transfer_ns, kBulk.per_transfer_ns, 1e-6);
  EXPECT_NEAR(cost.per_byte_ns, kBulk.per_byte_ns, 1e-9);
  EXPECT_EQ(cost.per_packet_ns, 0);
  EXPECT_EQ(cost.per_packet_fields_ns, 0);
}

TEST_F(SyntheticTimes, noise_of_five_percent_moves_them_little) {
  constexpr double kNoise = 0.05;
  constexpr double kMost = 0.15;
  for (int run = 0; run < 200; ++run) {
    const auto of_frames = frames(kPackets, kNoise);
    const auto of_fields = fields(kPackets, kNoise);
    const MethodCost cost = fit_packets({of_frames, of_fields, {}});
    EXPECT_NEAR(cost.per_transfer_ns, kPackets.per_transfer_ns, kMost * kPackets.per_transfer_ns);
    EXPECT_NEAR(cost.per_packet_ns, kPackets.per_packet_ns, kMost * kPackets.per_packet_ns);
    EXPECT_NEAR(cost.per_packet_fields_ns, kPackets.per_packet_fields_ns, kMost * kPackets.per_packet_fields_ns);
    EXPECT_NEAR(cost.per_byte_ns, kPackets.per_byte_ns, kMost * kPackets.per_byte_ns);
    const auto of_bulk = frames(kBulk, kNoise);
    const MethodCost bulk = fit_bulk({of_bulk, {}, {}});
    EXPECT_NEAR(bulk.per_transfer_ns, kBulk.per_transfer_ns, kMost * kBulk.per_transfer_ns);
    EXPECT_NEAR(bulk.per_byte_ns, kBulk.per_byte_ns, kMost * kBulk.per_byte_ns);
  }
}

TEST_F(SyntheticTimes, a_time_that_another_process_took_for_itself_changes_nothing) {
  auto of_frames = frames(kPackets, 0);
  auto of_fields = fields(kPackets, 0);
  of_frames[1].ns *= 20;
  of_frames[7].ns *= 3;
  of_fields[2].ns *= 8;
  const MethodCost cost = fit_packets({of_frames, of_fields, {}});
  EXPECT_NEAR(cost.per_transfer_ns, kPackets.per_transfer_ns, 1e-6);
  EXPECT_NEAR(cost.per_packet_ns, kPackets.per_packet_ns, 1e-9);
  EXPECT_NEAR(cost.per_packet_fields_ns, kPackets.per_packet_fields_ns, 1e-9);
  EXPECT_NEAR(cost.per_byte_ns, kPackets.per_byte_ns, 1e-9);
}

TEST_F(SyntheticTimes, bytes_cost_what_they_cost_with_both_directions_busy) {
  const auto of_frames = frames(kPackets, 0);
  std::vector<Timing> both_ways;
  for (const double bytes : {512.0, 1024.0, 1514.0}) {
    both_ways.push_back({8192, bytes, kPackets.per_transfer_ns + 8192 * bytes * 0.05});
  }
  const MethodCost cost = fit_packets({of_frames, {}, both_ways});
  EXPECT_NEAR(cost.per_byte_ns, 0.05, 1e-9);
  EXPECT_NEAR(cost.per_packet_ns, kPackets.per_packet_ns, 1e-9);
  EXPECT_EQ(cost.per_packet_fields_ns, 0);
  const auto of_bulk = frames(kBulk, 0);
  const std::vector<Timing> slower{{1000, 1000, kBulk.per_transfer_ns + 1e6 * 0.7}};
  EXPECT_NEAR(fit_bulk({of_bulk, {}, slower}).per_byte_ns, 0.7, 1e-9);
}

TEST_F(SyntheticTimes, nonsense_gives_no_negative_coefficient) {
  std::uniform_real_distribution<double> any(1, 1e6);
  for (int run = 0; run < 500; ++run) {
    std::vector<Timing> of_frames = shapes_;
    for (Timing& timing : of_frames) {
      timing.ns = any(random_);
    }
    const std::vector<Timing> others{{64, 4, any(random_)}, {8192, 4, any(random_)}};
    const std::vector<Timing> both_ways{{8192, 1514, any(random_)}};
    for (MethodCost const& cost :
         {fit_packets({of_frames, others, both_ways}), fit_bulk({of_frames, others, both_ways})}) {
      EXPECT_GE(cost.per_transfer_ns, 0);
      EXPECT_GE(cost.per_packet_ns, 0);
      EXPECT_GE(cost.per_packet_fields_ns, 0);
      EXPECT_GE(cost.per_byte_ns, 0);
    }
  }
}

}  // namespace
}  // namespace catena::plan
