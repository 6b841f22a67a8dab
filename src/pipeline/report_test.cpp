// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report.hpp"
#include "pipeline/scale.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace catena::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Scaled, has_three_digits_and_the_prefix_that_suits) {
  for (const auto& [value, text] : std::vector<std::pair<double, std::string>>{{0, "0 s"},
                                                                               {1, "1.00 s"},
                                                                               {0.0000036, "3.60 us"},
                                                                               {0.1971323, "197 ms"},
                                                                               {0.0309, "30.9 ms"},
                                                                               {9.994, "9.99 s"},
                                                                               {9.996, "10.0 s"},
                                                                               {99.96, "100 s"},
                                                                               {999.4, "999 s"},
                                                                               {999.6, "1.00 ks"},
                                                                               {0.9996, "1.00 s"},
                                                                               {79.4e3, "79.4 ks"},
                                                                               {314.2e9, "314 Gs"},
                                                                               {2e15, "2000 Ts"},
                                                                               {2e-12, "0.00 ns"}}) {
    EXPECT_EQ(scaled(value, "s"), text) << value;
  }
}

Report some_report() {
  Report report;
  report.chain = "office";
  report.device = "none";
  report.seen = report.received = 5'000'000;
  report.received_bytes = 300'000'000;
  report.sent = 5'000'000;
  report.seconds = 2;
  // the last of their buckets, so that percentiles are exact
  report.latency.add(2'047, 50);
  report.latency.add(32'767, 45);
  report.latency.add(2'097'151, 4);
  report.latency.add(309'017'700, 1);
  NfReport& fw = report.nfs.emplace_back();
  fw.name = "fw";
  fw.type = "firewall";
  fw.placement = "cpu";
  fw.in = fw.passed = 5'000'000;
  fw.busy_seconds = 0.5;
  report.stages = {{"rx", 0.1}, {"fw", 0.5}, {"tx", 0.2}};
  return report;
}

TEST(Report, says_rates_and_times_in_scales_that_can_be_read) {
  const std::string text = to_text(some_report());
  EXPECT_THAT(text, HasSubstr("speed     2.00 s, 2.50 Mpps, 1.20 Gbps, 1 worker\n"));
  EXPECT_THAT(text, HasSubstr("latency   p50 2.05 us, p95 32.8 us, p99 2.10 ms, max 309 ms\n"));
  EXPECT_THAT(text, Not(HasSubstr("offered")));
}

TEST(Report, says_how_long_each_nf_worked) {
  EXPECT_THAT(to_text(some_report()), HasSubstr(" 500 ms "));
  EXPECT_EQ(nlohmann::json::parse(to_json(some_report()))["nfs"][0]["busy_seconds"], 0.5);
}

TEST(Report, says_what_was_offered_beside_what_was_achieved) {
  Report report = some_report();
  report.offered_per_second = 100'000'000;
  EXPECT_THAT(to_text(report), HasSubstr("offered   100 Mpps, of which 2.5 % were taken: the chain, or the source, is "
                                         "not fast enough for more\n"));
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["offered_packets_per_second"], 100'000'000);
  report.offered_per_second = 2'500'000;
  EXPECT_THAT(to_text(report), HasSubstr("offered   2.50 Mpps, of which 100.0 % were taken\n"));
  report.offered_per_second = 2'300'000;  // the last packets need not wait as long as those before
  EXPECT_THAT(to_text(report), HasSubstr("offered   2.30 Mpps, of which 100.0 % were taken\n"));
  report.offered_per_second = 0;
  EXPECT_TRUE(nlohmann::json::parse(to_json(report))["offered_packets_per_second"].is_null());
}

TEST(Report, that_does_not_add_up_says_so) {
  Report report = some_report();
  EXPECT_THAT(to_text(report), Not(HasSubstr("NOT BALANCED")));
  report.sent -= 1;
  EXPECT_THAT(to_text(report), HasSubstr("account   5000000 in = 4999999 out + 0 dropped   NOT BALANCED"));
}

}  // namespace
}  // namespace catena::runtime
