// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pipeline/counts.hpp"

namespace catena::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Report some_report() {
  Report report;
  report.chain = "office";
  report.device.name = "none";
  report.rx.seen = report.rx.received = 5'000'000;
  report.rx.received_bytes = 300'000'000;
  report.tx.sent = 5'000'000;
  report.seconds = 2;
  // the last of their buckets, so that percentiles are exact
  report.tx.latency.add(2'047, 50);
  report.tx.latency.add(32'767, 45);
  report.tx.latency.add(2'097'151, 4);
  report.tx.latency.add(309'017'700, 1);
  NfReport& fw = report.nfs.emplace_back();
  fw.name = "fw";
  fw.type = "firewall";
  fw.placement = "cpu";
  fw.packets.in = fw.packets.passed = 5'000'000;
  fw.busy_seconds = 0.5;
  report.work.stages = {{"rx", 0.1}, {"fw", 0.5}, {"tx", 0.2}};
  return report;
}

TEST(Report, says_rates_and_times_in_scales_that_can_be_read) {
  const std::string text = to_text(some_report());
  EXPECT_THAT(text, HasSubstr("speed     2.00 s, 2.50 Mpps, 1.20 Gbps, 1 worker\n"));
  EXPECT_THAT(text, HasSubstr("latency   p50 2.05 us, p95 32.8 us, p99 2.10 ms, max 309 ms\n"));
  EXPECT_THAT(text, Not(HasSubstr("offered")));
}

TEST(Report, a_slow_rate_does_not_read_like_millions) {
  Report report = some_report();
  report.rx.received = 1;
  report.rx.received_bytes = 42;
  report.seconds = 8.36;
  EXPECT_THAT(to_text(report), HasSubstr("speed     8.36 s, 0.120 pps, 40.2 bps, 1 worker\n"));
}

TEST(Report, says_how_long_each_nf_worked) {
  EXPECT_THAT(to_text(some_report()), HasSubstr(" 500 ms "));
  EXPECT_EQ(nlohmann::json::parse(to_json(some_report()))["nfs"][0]["busy_seconds"], 0.5);
}

TEST(Report, says_what_was_offered_beside_what_was_achieved) {
  Report report = some_report();
  report.rx.offered_per_second = 100'000'000;
  EXPECT_THAT(to_text(report), HasSubstr("offered   100 Mpps, of which 2.5 % were taken: the chain, or the source, is "
                                         "not fast enough for more\n"));
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["offered_packets_per_second"], 100'000'000);
  report.rx.offered_per_second = 2'500'000;
  EXPECT_THAT(to_text(report), HasSubstr("offered   2.50 Mpps, of which 100.0 % were taken\n"));
  report.rx.offered_per_second = 2'300'000;  // the last packets need not wait as long as those before
  EXPECT_THAT(to_text(report), HasSubstr("offered   2.30 Mpps, of which 100.0 % were taken\n"));
  report.rx.offered_per_second = 0;
  EXPECT_TRUE(nlohmann::json::parse(to_json(report))["offered_packets_per_second"].is_null());
}

TEST(Report, explains_each_drop_reason_under_the_row_of_its_nf) {
  Report report = some_report();
  NfReport& fw = report.nfs.front();
  fw.packets.passed = 4'000'000;
  fw.packets.drops = {{"denied", 999'999}, {"unsupported", 1}};
  fw.packets.drop_help = {"a rule denies it", "not inspected"};
  EXPECT_THAT(to_text(report), HasSubstr("  denied 999999, unsupported 1\n             denied: a rule denies it\n"
                                         "             unsupported: not inspected\n"));
}

TEST(Report, names_what_an_nf_did_not_inspect_and_warns_of_what_passed) {
  metrics::Snapshot counts;
  const auto add = [&counts](const char* nf, const char* reason, const char* type, const char* verdict,
                             unsigned packets) {
    counts.add(counts::kUninspected, {{"nf", nf}, {"reason", reason}, {"ethertype", type}, {"verdict", verdict}},
               packets);
  };
  for (int shard = 0; shard < 2; ++shard) {
    add("fw", "not_ipv4", "ipv6", "drop", 2);
    add("fw", "link_local", "arp", "pass", 1);
    add("ids", "not_ipv4", "ipv6", "pass", 3);
    add("ids", "tunnel_gre", "ipv4", "outer", 4);
  }
  Report report = some_report();
  report.nfs = {report_of("fw", counts), report_of("ids", counts), report_of("rt", counts)};
  const std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("fw        not inspected: passed arp 2; dropped ipv6 4\n"));
  EXPECT_THAT(text, HasSubstr("ids       not inspected: passed ipv6 6; outer headers only tunnel_gre 8\n"));
  EXPECT_THAT(text, HasSubstr("WARNING   ids: passed packets without inspection: ipv6 6\n"));
  EXPECT_THAT(text, Not(HasSubstr("WARNING   fw")));
  EXPECT_THAT(text, Not(HasSubstr("rt        not inspected")));
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["nfs"][1]["not_inspected"],
            nlohmann::json::parse(R"([{"reason":"not_ipv4","ethertype":"ipv6","verdict":"pass","packets":6},
                                      {"reason":"tunnel_gre","ethertype":"ipv4","verdict":"outer","packets":8}])"));
  EXPECT_EQ(json["nfs"][2]["not_inspected"], nlohmann::json::array());
}

TEST(Report, has_columns_of_a_gpu_only_for_an_nf_on_one) {
  Report report = some_report();
  EXPECT_THAT(to_text(report), Not(HasSubstr("H2D")));
  NfReport& ids = report.nfs.emplace_back(report.nfs.front());
  for (const char* place : {"gpu", "gpu -> cpu"}) {
    ids.placement = place;
    EXPECT_THAT(to_text(report), HasSubstr(" H2D B/pkt   D2H B/pkt  drops\n")) << place;
  }
  ids.placement = "process";
  ids.device.bytes_to_device_per_packet = 54;
  EXPECT_THAT(to_text(report), HasSubstr(" 54.0 "));
}

TEST(Report, has_back_pressure_only_where_the_file_has_flow_or_packets_were_lost) {
  Report report = some_report();
  report.nfs.front().queue.slow_downs = 14;
  report.nfs.front().queue.pauses = 13;
  report.nfs.front().queue.peak = 768;
  EXPECT_THAT(to_text(report), Not(HasSubstr("back-pressure")));
  report.has_flow = true;
  EXPECT_THAT(to_text(report),
              HasSubstr("fw        sent 14 back-pressure signals, paused 13 times; peak queue 768 packets\n"));
  report.has_flow = false;
  report.rx.drops = {{"backlog_full", 1}};
  EXPECT_THAT(to_text(report), HasSubstr("back-pressure"));
}

TEST(Report, that_does_not_add_up_says_so) {
  Report report = some_report();
  EXPECT_THAT(to_text(report), Not(HasSubstr("NOT BALANCED")));
  report.tx.sent -= 1;
  EXPECT_THAT(to_text(report), HasSubstr("account   5000000 in = 4999999 out + 0 dropped   NOT BALANCED"));
}

}  // namespace
}  // namespace catena::runtime
