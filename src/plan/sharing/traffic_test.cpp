// SPDX-License-Identifier: Apache-2.0
#include "plan/sharing/traffic.hpp"

#include <gtest/gtest.h>

namespace catena::share {
namespace {

constexpr std::chrono::milliseconds kSecond{1000};
const std::vector<std::uint64_t> kBacklog{2048, 2048};

class Traffic : public ::testing::Test {
 protected:
  void start() { meter_.start({{0, 0}, {0, 0}, 0, 0}, 358, at_); }
  void look(TrafficSample now, std::chrono::milliseconds after = kSecond) {
    meter_.look(std::move(now), kBacklog, at_ += after);
  }

  std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now();
  TrafficMeter meter_;
};

TEST_F(Traffic, is_not_known_before_a_period_has_passed) {
  start();
  EXPECT_EQ(meter_.packets_per_s(0), 0);
  EXPECT_FALSE(meter_.needed_pps(0).has_value());
  EXPECT_EQ(meter_.packet_bytes(), 358U);
  look({{7, 7}, {0, 0}, 7, 700}, TrafficMeter::kMinPeriod / 2);
  EXPECT_FALSE(meter_.needed_pps(0).has_value()) << "too soon to tell";
}

TEST_F(Traffic, is_that_of_the_last_period) {
  start();
  look({{1000, 800}, {0, 0}, 1000, 64'000});
  EXPECT_DOUBLE_EQ(meter_.packets_per_s(0), 1000);
  EXPECT_DOUBLE_EQ(meter_.packets_per_s(1), 800);
  EXPECT_EQ(meter_.packet_bytes(), 64U);
  look({{1500, 1300}, {0, 0}, 1500, 64'000 + 500 * 1500}, kSecond / 2);
  EXPECT_DOUBLE_EQ(meter_.packets_per_s(0), 1000);
  EXPECT_EQ(meter_.packet_bytes(), 1500U) << "small packets of before are not in it";
  look({{1500, 1300}, {0, 0}, 1500, 64'000 + 500 * 1500});
  EXPECT_EQ(meter_.packets_per_s(0), 0);
  EXPECT_EQ(meter_.packet_bytes(), 1500U) << "no packets have no size";
}

TEST_F(Traffic, of_an_nf_that_keeps_up_is_what_it_needs_with_a_margin) {
  start();
  look({{1000, 0}, {2047, 0}, 1000, 64'000});
  EXPECT_DOUBLE_EQ(meter_.needed_pps(0).value(), 1000 * TrafficMeter::kMargin);
  EXPECT_DOUBLE_EQ(meter_.needed_pps(1).value(), 0);
}

TEST_F(Traffic, of_an_nf_that_packets_wait_for_says_not_how_much_it_needs) {
  start();
  look({{1000, 1000}, {2048, 0}, 1000, 64'000});
  EXPECT_FALSE(meter_.needed_pps(0).has_value());
  EXPECT_TRUE(meter_.needed_pps(1).has_value()) << "the NF behind it keeps up";
}

}  // namespace
}  // namespace catena::share
