// SPDX-License-Identifier: Apache-2.0
#include "profile/nf_fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace catena::profile {
namespace {

using ::testing::SizeIs;

/// An NF that is as the model has it: on 16 SMs, by hand.
///   kernel     100 ns + 10 ns for each packet of an SM
///   transfers  500 ns + 2 ns a packet
///   the rest   300 ns + 0.5 ns a packet
///   the CPU    700 ns + 20 ns a packet
NfTimes ideal() {
  NfTimes times{16, {}, {}};
  for (const std::uint32_t packets : {64U, 128U, 256U, 512U}) {
    const double kernel = 100 + 10.0 * packets / 16;
    const double transfer = 500 + 2.0 * packets;
    times.launches.push_back(
        {packets, kernel, transfer, kernel + transfer + 300 + 0.5 * packets, 700 + 20.0 * packets});
  }
  return times;
}

TEST(NfFit, finds_the_lines_of_an_nf_that_is_as_the_model_has_it) {
  const NfModel model = model_of(ideal());
  EXPECT_NEAR(model.cost.kernel.intercept, 100, 1e-6);
  EXPECT_NEAR(model.cost.kernel.slope, 10, 1e-9) << "for each packet of an SM, not of a launch";
  EXPECT_NEAR(model.transfer.fit.line.intercept, 500, 1e-6);
  EXPECT_NEAR(model.transfer.fit.line.slope, 2, 1e-9);
  EXPECT_NEAR(model.host_ns_per_packet, 0.5, 1e-9);
  EXPECT_NEAR(model.cost.transfer.slope, 2.5, 1e-9) << "with the host's part";
  EXPECT_NEAR(model.cost.overhead_ns, 300, 1e-6) << "C";
  EXPECT_NEAR(model.cost.cpu_ns_per_packet, 20, 1e-9);
  EXPECT_NEAR(model.kernel.fit.r_squared, 1, 1e-9);
  EXPECT_NEAR(model.transfer.fit.r_squared, 1, 1e-9);
  EXPECT_NEAR(model.kernel.worst_percent, 0, 1e-6);
  EXPECT_EQ(model.kernel_sms, 16U);
  EXPECT_EQ(model.cost.max_packets_per_sm, 32U) << "512 packets on 16 SMs are the most that was measured";
}

TEST(NfFit, takes_the_kernel_of_the_smallest_part_of_the_device) {
  NfTimes times = ideal();
  for (const std::uint32_t sms : {16U, 4U, 8U}) {
    for (const std::uint32_t packets : {64U, 128U, 256U}) {
      // parts of 4 do as the model says; the others are as slow whatever they have to do
      times.kernels.push_back({sms, packets, sms == 4 ? 40 + 7.0 * packets / 4 : 1000});
    }
  }
  const NfModel model = model_of(times);
  EXPECT_EQ(model.kernel_sms, 4U);
  EXPECT_NEAR(model.cost.kernel.intercept, 40, 1e-6);
  EXPECT_NEAR(model.cost.kernel.slope, 7, 1e-9);
  EXPECT_EQ(model.cost.max_packets_per_sm, 64U);
}

TEST(NfFit, says_where_a_step_breaks_the_line) {
  NfTimes times{1, {}, {}};
  for (const std::uint32_t packets : {64U, 128U, 256U, 512U, 1024U}) {
    times.launches.push_back({packets, 1.0 * packets, 1.0 * packets, 3.0 * packets});
  }
  times.launches.back().kernel_ns = 2048;  // twice what the line says
  times.launches.back().round_trip_ns += 1024;
  const NfModel model = model_of(times);
  EXPECT_EQ(model.kernel.worst_at, 1024);
  EXPECT_NEAR(model.kernel.worst_percent, -50, 1e-6);
  EXPECT_LT(model.kernel.fit.r_squared, 1);
  EXPECT_NEAR(model.transfer.worst_percent, 0, 1e-6);
}

TEST(NfFit, has_no_cost_below_zero) {
  NfTimes times = ideal();
  for (LaunchPoint& launch : times.launches) {
    launch.round_trip_ns = launch.kernel_ns;  // clocks that disagree
  }
  const NfModel model = model_of(times);
  EXPECT_GE(model.cost.overhead_ns, 0);
  EXPECT_GE(model.host_ns_per_packet, 0);
}

TEST(NfFit, of_nothing_is_nothing) {
  const NfModel model = model_of({16, {}, {}});
  EXPECT_EQ(model.cost.kernel.slope, 0);
  EXPECT_THAT(compare(model, {16, {}, {}}), SizeIs(0));
}

TEST(NfFit, predicts_what_equations_4_and_2_say) {
  NfTimes times = ideal();
  const NfModel model = model_of(times);
  EXPECT_NEAR(predicted_ns(model.cost, 16, 512), share::latency_ns(model.cost, {16, 32}), 1e-6);
  times.launches.front().round_trip_ns *= 2;
  const std::vector<Comparison> rows = compare(model, times);
  ASSERT_THAT(rows, SizeIs(4));
  EXPECT_EQ(rows[0].packets, 64U);
  EXPECT_NEAR(rows[0].latency_error_percent, -50, 1e-6) << "half of what was measured";
  EXPECT_NEAR(rows[0].throughput_error_percent, 100, 1e-6);
  EXPECT_NEAR(rows[3].latency_error_percent, 0, 1e-6);
  // 512 packets in 100 + 320 + 500 + 1024 + 300 + 256 = 2500 ns
  EXPECT_NEAR(rows[3].predicted_ns, 2500, 1e-6);
  EXPECT_NEAR(rows[3].predicted_per_s, 512 / 2500e-9, 1);
  EXPECT_NEAR(rows[3].measured_per_s, 512 / 2500e-9, 1);
}

}  // namespace
}  // namespace catena::profile
