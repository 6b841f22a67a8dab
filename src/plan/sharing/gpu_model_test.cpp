// SPDX-License-Identifier: Apache-2.0
#include "plan/sharing/gpu_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <random>

namespace catena::share {
namespace {

using ::testing::DoubleNear;
using ::testing::Optional;

/// Kernel 20,000 + 30 B0, transfers 5,000 + 2 B, C 1,000.
constexpr NfCost kCost{{20'000, 30}, {5'000, 2}, 1'000, 1024};

/// Without an equation: the first number of packets that is fast enough.
std::optional<std::uint32_t> by_trying(NfCost const& cost, double wanted, std::uint32_t sms) {
  for (std::uint32_t packets = 1; packets <= cost.max_packets_per_sm; ++packets) {
    const double ns = cost.kernel.intercept + cost.kernel.slope * packets + cost.transfer.intercept +
                      cost.transfer.slope * packets * sms + cost.overhead_ns;
    if (packets * 1e9 * sms / ns >= wanted) {
      return packets;
    }
  }
  return std::nullopt;
}

std::uint32_t whole_up_to(std::mt19937& random, std::uint32_t most) {
  return std::uniform_int_distribution<std::uint32_t>(1, most)(random);
}

NfCost random_cost(std::mt19937& random) {
  const auto up_to = [&random](double most) { return std::uniform_real_distribution<double>(0, most)(random); };
  return {{up_to(50'000) + 100, up_to(100)}, {up_to(20'000), up_to(5)}, up_to(10'000), whole_up_to(random, 2048)};
}

TEST(GpuModel, latency_and_speed_are_those_of_equations_1_2_and_4) {
  // 20,000 + 30 * 256 + 5,000 + 2 * 256 * 4 + 1,000
  EXPECT_DOUBLE_EQ(latency_ns(kCost, {4, 256}), 35'728);
  EXPECT_DOUBLE_EQ(packets_per_s(kCost, {4, 256}), 1024 / 35'728e-9);
}

TEST(GpuModel, equation_3_by_hand) {
  // T = 0.02 packets a ns, N = 4: 0.02 * 26,000 / (4 - 0.02 * (30 + 8)) = 520 / 3.24 = 160.49
  EXPECT_THAT(least_packets_per_sm(kCost, 20e6, 4), Optional(161U));
  // N = 1: 1 - 0.02 * 32 = 0.36; 520 / 0.36 = 1444.4: beyond the first step
  EXPECT_EQ(least_packets_per_sm(kCost, 20e6, 1), std::nullopt);
}

TEST(GpuModel, no_batch_is_fast_enough_where_the_denominator_is_not_above_0) {
  // 1 - T * 32 = 0 at 1 / 32 packets a ns
  EXPECT_EQ(least_packets_per_sm(kCost, 31.25e6, 1), std::nullopt);
  EXPECT_EQ(least_packets_per_sm(kCost, 50e6, 1), std::nullopt);
  // transfers alone take 2 ns a packet, whatever the SMs
  EXPECT_EQ(least_packets_per_sm(kCost, 500e6, 1'000'000), std::nullopt);
}

TEST(GpuModel, least_batches_are_those_that_trying_finds) {
  std::mt19937 random(1);
  int found = 0;
  for (int i = 0; i < 2000; ++i) {
    const NfCost cost = random_cost(random);
    const double wanted = std::uniform_real_distribution<double>(1e3, 60e6)(random);
    const std::uint32_t sms = whole_up_to(random, 32);
    const auto expected = by_trying(cost, wanted, sms);
    const auto actual = least_packets_per_sm(cost, wanted, sms);
    ASSERT_EQ(actual.has_value(), expected.has_value()) << i;
    if (expected) {
      ++found;
      ASSERT_EQ(*actual, *expected) << i;
    }
  }
  EXPECT_GT(found, 500) << "most of them say nothing";
}

TEST(GpuModel, a_share_has_no_more_sms_than_speed_and_limit_ask_for) {
  std::mt19937 random(2);
  int found = 0;
  for (int i = 0; i < 1000; ++i) {
    const NfCost cost = random_cost(random);
    const double wanted = std::uniform_real_distribution<double>(1e5, 40e6)(random);
    const double limit = std::uniform_real_distribution<double>(1e4, 1e6)(random);
    const std::uint32_t step = whole_up_to(random, 4);
    std::optional<Share> expected;
    for (std::uint32_t sms = step; sms <= 32 && !expected; sms += step) {
      if (const auto packets = by_trying(cost, wanted, sms); packets && latency_ns(cost, {sms, *packets}) <= limit) {
        expected = Share{sms, *packets};
      }
    }
    found += expected ? 1 : 0;
    ASSERT_EQ(least_share(cost, wanted, limit, 32, step), expected) << i;
  }
  EXPECT_GT(found, 200);
}

TEST(GpuModel, given_sms_are_filled_up_to_the_limit_and_no_further) {
  // 26,000 + (30 + 2 * 8) B0 <= 40,000: 304.3
  EXPECT_THAT(fullest_share(kCost, 40'000, 8), Optional(Share{8, 304}));
  EXPECT_THAT(fullest_share(kCost, 1e6, 8), Optional(Share{8, 1024})) << "the model holds no further";
  EXPECT_EQ(fullest_share(kCost, 26'010, 8), std::nullopt);
  EXPECT_THAT(fullest_share({{1'000, 0}, {0, 0}, 0, 64}, 1'000, 2), Optional(Share{2, 64}));
  EXPECT_EQ(fullest_share({{1'000, 0}, {0, 0}, 0, 64}, 999, 2), std::nullopt);
}

TEST(GpuModel, a_fit_says_how_much_it_explains) {
  constexpr std::array<plan::Point, 3> kOnALine{{{1, 12}, {2, 14}, {4, 18}}};
  const Fit on_a_line = fit(kOnALine);
  EXPECT_THAT(on_a_line.line.intercept, DoubleNear(10, 1e-9));
  EXPECT_THAT(on_a_line.line.slope, DoubleNear(2, 1e-9));
  EXPECT_THAT(on_a_line.r_squared, DoubleNear(1, 1e-9));
  // steps: far from any line
  constexpr std::array<plan::Point, 4> kSteps{{{1, 10}, {2, 10}, {3, 100}, {4, 10}}};
  EXPECT_LT(fit(kSteps).r_squared, 0.5);
}

}  // namespace
}  // namespace catena::share
