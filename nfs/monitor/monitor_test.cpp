// SPDX-License-Identifier: Apache-2.0
#include "monitor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/headers.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "monitor_testing.hpp"

namespace catena::monitor {
namespace {

using nf::testing::Frame;
using nf::testing::make_frame;
using nf::testing::RunOptions;
using nf::testing::RunResult;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kJson = "export: [{format: json, file: flows.jsonl}]\n";
constexpr std::string_view kBoth = "export: [{format: json, file: flows.jsonl}, {format: ipfix, file: flows.ipfix}]\n";

class MonitorTest : public ::testing::Test {
 protected:
  std::string config_error(std::string_view yaml) {
    const auto monitor = nf::testing::make_nf(catena_nf_monitor(), yaml, folder_.path());
    EXPECT_EQ(monitor.status().code(), absl::StatusCode::kInvalidArgument) << yaml;
    return std::string(monitor.status().message());
  }
  std::vector<nlohmann::json> exported() {
    std::vector<nlohmann::json> records;
    std::istringstream lines(folder_.read("flows.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      records.push_back(nlohmann::json::parse(line));
    }
    return records;
  }
  testing::ScratchFolder folder_;
};

TEST_F(MonitorTest, a_record_is_one_json_line) {
  RunOptions options;
  options.arrivals_ns = {1'700'000'000'000'000'001, 1'700'000'000'000'000'009};
  const Frame second = nf::testing::make_segment(0xC0000201, 0xC6336402, 40'000, 443, nf::testing::kFin);
  testing::run(kJson, {make_frame(6, 0xC0000201, 0xC6336402, 40'000, 443, "hello"), second}, folder_, options);
  EXPECT_EQ(folder_.read("flows.jsonl"),
            R"({"src":"192.0.2.1","dst":"198.51.100.2","sport":40000,"dport":443,"protocol":6,"tos":0,"packets":2,)"
            R"("bytes":85,"first_ns":1700000000000000001,"last_ns":1700000000000000009,"tcp_flags":25,)"
            R"("end_reason":"forced_end"})"
            "\n");
}

TEST_F(MonitorTest, a_quiet_live_link_exports_without_another_packet) {
  auto monitor = nf::testing::make_nf(catena_nf_monitor(), kBoth, folder_.path());
  ASSERT_TRUE(monitor.ok()) << monitor.status();
  nf::Nf& nf = **monitor;
  nf::testing::CpuNf instance(catena_nf_monitor(), std::move(monitor).value());
  const std::vector<Frame> frames{make_frame(17, 1, 2, 10, 20, "a")};
  const std::vector<std::uint64_t> arrivals_ns{1'700'000'000 * kTestSecond};
  nf::testing::PacketStore store(frames, arrivals_ns);
  instance.process(store.all());
  for (std::uint64_t second = 1; second <= 16; ++second) {
    nf.tick(arrivals_ns[0] + second * kTestSecond);
  }
  const auto records = exported();
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0]["end_reason"], "idle");
  EXPECT_EQ(records[0]["last_ns"], arrivals_ns[0]) << "a tick is no packet";
  EXPECT_THAT(folder_.read("flows.ipfix"), SizeIs(::testing::Gt(16))) << "a message with a template and a record";
}

TEST_F(MonitorTest, both_directions_of_a_conversation_are_two_flows) {
  testing::run(kJson, {make_frame(17, 1, 2, 10, 20, "a"), make_frame(17, 2, 1, 20, 10, "bcd")}, folder_);
  const auto records = exported();
  ASSERT_THAT(records, SizeIs(2));
  EXPECT_EQ(records[0]["bytes"], 29);
  EXPECT_EQ(records[1]["bytes"], 31);
}

TEST_F(MonitorTest, every_end_reason_has_a_name) {
  std::vector<Frame> frames;
  RunOptions options;
  const auto at = [&](std::uint64_t second, std::uint32_t src) {
    frames.push_back(make_frame(17, src, 9, 1, 1, ""));
    options.arrivals_ns.push_back(second * kTestSecond);
  };
  at(0, 1);
  at(5, 1);
  at(10, 1);  // active
  at(11, 2);
  at(12, 3);  // evicts 1
  at(26, 3);  // 2 is idle
  testing::run(concat(kJson, "max_flows: 2\nidle_timeout_s: 15\nactive_timeout_s: 10\n"), frames, folder_, options);
  std::vector<std::string> reasons;
  for (auto const& record : exported()) {
    reasons.push_back(record["end_reason"]);
  }
  EXPECT_THAT(reasons, ElementsAre("active", "lack_of_resources", "idle", "active", "forced_end"));
}

TEST_F(MonitorTest, statistics_count_flows_records_and_evictions) {
  std::vector<Frame> frames;
  for (std::uint32_t src = 0; src < 50; ++src) {
    frames.push_back(make_frame(17, src, 9, 1, 1, ""));
  }
  const RunResult result = testing::run(concat(kJson, "max_flows: 20"), frames, folder_);
  EXPECT_EQ(testing::statistic(result, "flows"), 50U);
  EXPECT_EQ(testing::statistic(result, "flows_peak"), 20U);
  EXPECT_EQ(testing::statistic(result, "flows_exported"), 50U);
  EXPECT_EQ(testing::statistic(result, "flows_evicted"), 30U);
  EXPECT_EQ(testing::statistic(result, "export_errors"), 0U);
  EXPECT_GT(testing::statistic(result, "memory_bytes"), 20U * 64);
  EXPECT_THAT(exported(), SizeIs(50));
}

TEST_F(MonitorTest, the_end_report_names_the_top_talkers) {
  auto monitor = nf::testing::make_nf(catena_nf_monitor(), "top: 2", folder_.path());
  ASSERT_TRUE(monitor.ok()) << monitor.status();
  nf::testing::CpuNf instance(catena_nf_monitor(), std::move(monitor).value());
  nf::testing::PacketStore store(std::vector{
      make_frame(17, 0xC0000201, 0xC6336402, 1, 2, "four"), make_frame(17, 0xC0000201, 0xC6336402, 9, 9, "four"),
      make_frame(17, 0xC6336402, 0xC0000201, 2, 1, ""), make_frame(17, 0xC0000203, 0xC6336402, 1, 2, "12345")});
  instance.process(store.all());
  ASSERT_TRUE(instance.nf().finish().ok());
  EXPECT_THAT(instance.nf().end_report(), ElementsAre("192.0.2.1 -> 198.51.100.2: 64 bytes, 2 packets",
                                                      "192.0.2.3 -> 198.51.100.2: 33 bytes, 1 packets"));
}

TEST_F(MonitorTest, the_start_report_names_memory_and_exports) {
  const auto monitor = nf::testing::make_nf(catena_nf_monitor(), concat("max_flows: 1048576\n", kBoth), folder_.path());
  EXPECT_THAT((*monitor)->start_report(),
              ElementsAre("flow table of 88 MiB", concat("json to ", folder_.path("flows.jsonl")),
                          concat("ipfix to ", folder_.path("flows.ipfix"))));
}

TEST_F(MonitorTest, frames_that_are_not_ipv4_pass_uncounted) {
  Frame ipv6(60, 0);
  ipv6[12] = 0x86;
  ipv6[13] = 0xDD;
  const RunResult result = testing::run(kJson, {ipv6, Frame(), Frame(13, 0xFF)}, folder_);
  EXPECT_EQ(result.counters.unsupported, 3U);
  EXPECT_THAT(exported(), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(folder_.path("flows.jsonl")));
}

TEST_F(MonitorTest, hostile_frames_survive_and_every_ipv4_packet_is_counted_once) {
  const testing::Traffic traffic(20'000);
  RunOptions options;
  options.arrivals_ns = traffic.arrivals_ns;
  const RunResult result =
      testing::run(concat(kJson, "max_flows: 64\nactive_timeout_s: 10"), traffic.frames, folder_, options);
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  std::set<std::string> reasons;
  for (auto const& record : exported()) {
    packets += record["packets"].get<std::uint64_t>();
    bytes += record["bytes"].get<std::uint64_t>();
    reasons.insert(record["end_reason"]);
    ASSERT_LE(record["first_ns"], record["last_ns"]);
  }
  EXPECT_GT(result.counters.processed, 18'000U);
  EXPECT_EQ(packets, result.counters.processed);
  std::uint64_t expected_bytes = 0;
  for (Frame const& frame : traffic.frames) {
    const auto layers = packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size()));
    expected_bytes += (layers.flags & packet::kIpv4) != 0 ? packet::load_be16(&frame[layers.l3 + 2U]) : 0U;
  }
  EXPECT_EQ(bytes, expected_bytes);
  EXPECT_THAT(reasons, ElementsAre("active", "forced_end", "idle", "lack_of_resources"));
}

TEST_F(MonitorTest, cutting_packets_into_other_batches_changes_no_byte) {
  const testing::Traffic traffic(5000);
  std::string json;
  std::string ipfix;
  std::vector<nf::Statistic> statistics;
  for (const std::uint32_t unit : {64U, 1U, 31U, 32U, 33U, 65U, 256U, 5000U}) {
    RunOptions options;
    options.arrivals_ns = traffic.arrivals_ns;
    options.unit_size = unit;
    const RunResult result =
        testing::run(concat(kBoth, "max_flows: 64\nactive_timeout_s: 10"), traffic.frames, folder_, options);
    if (json.empty()) {
      json = folder_.read("flows.jsonl");
      ipfix = folder_.read("flows.ipfix");
      ASSERT_GT(json.size(), 10'000U);
      ASSERT_GT(ipfix.size(), 10'000U);
    }
    EXPECT_TRUE(folder_.read("flows.jsonl") == json) << unit;
    EXPECT_TRUE(folder_.read("flows.ipfix") == ipfix) << unit;
    statistics = statistics.empty() ? result.statistics : statistics;
    for (std::size_t i = 0; i + 1 < statistics.size(); ++i) {  // the last is memory
      EXPECT_EQ(result.statistics[i].value, statistics[i].value) << statistics[i].name << unit;
    }
  }
}

TEST_F(MonitorTest, a_file_that_cannot_be_written_ends_the_run_as_data_loss) {
  if (!std::filesystem::exists("/dev/full")) {
    GTEST_SKIP() << "this system has no /dev/full";
  }
  auto monitor = nf::testing::make_nf(catena_nf_monitor(),
                                      "export: [{format: json, file: /dev/full}, {format: json, file: flows.jsonl}]",
                                      folder_.path());
  ASSERT_TRUE(monitor.ok()) << monitor.status();
  nf::testing::CpuNf instance(catena_nf_monitor(), std::move(monitor).value());
  nf::testing::PacketStore store(std::vector{make_frame(17, 1, 2, 3, 4, ""), make_frame(17, 2, 2, 3, 4, "")});
  instance.process(store.all());
  const Status status = instance.nf().finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full: No space left"));
  EXPECT_EQ(instance.nf().statistics()[4].name, "export_errors");
  EXPECT_EQ(instance.nf().statistics()[4].value, 2U);
  EXPECT_THAT(exported(), SizeIs(2)) << "the other file is whole";
}

TEST_F(MonitorTest, a_collector_that_is_not_there_does_not_end_the_run) {
  std::optional<testing::Receiver> receiver(std::in_place);
  const std::string yaml = concat("export: [{format: ipfix, udp: 127.0.0.1:", receiver->port(), "}]");
  receiver.reset();
  std::vector<Frame> frames;
  for (std::uint32_t src = 0; src < 300; ++src) {
    frames.push_back(make_frame(17, src, 9, 1, 1, ""));
  }
  const RunResult result = testing::run(yaml, frames, folder_);
  EXPECT_GT(testing::statistic(result, "export_errors"), 0U);
  EXPECT_EQ(testing::statistic(result, "flows_exported"), 300U);
}

TEST_F(MonitorTest, hints_name_what_is_read_and_that_nothing_is_written) {
  const auto monitor = nf::testing::make_nf(catena_nf_monitor(), "{}", folder_.path());
  const nf::Hints hints = (*monitor)->hints();
  EXPECT_EQ(hints.cr | hints.cw | hints.gw | hints.complete_writes | hints.prepare_reads, packet::kNoFields);
  for (const packet::FieldSet reads : {hints.gr, hints.complete_reads}) {
    EXPECT_TRUE(packet::contains(reads, packet::kIpv4Src));
    EXPECT_TRUE(packet::contains(reads, packet::kTcpFlags));
    EXPECT_FALSE(packet::contains(reads, packet::kPayload));
  }
  EXPECT_FALSE(packet::contains(hints.gr, packet::kIpv4Tos)) << "the host has it of the first packet";
}

TEST_F(MonitorTest, wrong_configuration_is_an_error_with_position) {
  EXPECT_THAT(config_error("max_flows: 0"), HasSubstr("test.yaml:1:12: 'max_flows' is '0'; allowed"));
  EXPECT_THAT(config_error("max_flows: 100000001"), HasSubstr("100000000"));
  EXPECT_THAT(config_error("idle_timeout_s: 0"), HasSubstr("test.yaml:1:17"));
  EXPECT_THAT(config_error("active_timeout_s: -1"), HasSubstr("'active_timeout_s' is '-1'"));
  EXPECT_THAT(config_error("top: 1001"), HasSubstr("'top'"));
  EXPECT_THAT(config_error("observation_domain: 4294967296"), HasSubstr("4294967295"));
  EXPECT_THAT(config_error("max_flow: 5"), HasSubstr("did you mean 'max_flows'?"));
  EXPECT_THAT(config_error("export: flows.jsonl"), HasSubstr("'export' must be a list"));
  EXPECT_THAT(config_error("export: [{format: csv, file: a}]"), HasSubstr("test.yaml:1:19: 'format' is 'csv'"));
  EXPECT_THAT(config_error("export: [{format: json}]"), HasSubstr("test.yaml:1:10: an entry of 'export' has either"));
  EXPECT_THAT(config_error("export: [{format: ipfix, file: a, udp: 'h:1'}]"), HasSubstr("either 'file' or 'udp'"));
  EXPECT_THAT(config_error("export: [{format: json, udp: '127.0.0.1:4739'}]"),
              HasSubstr("test.yaml:1:30: json goes to a file only"));
  EXPECT_THAT(config_error("export: [{format: json, file: a, template_refresh: 3}]"),
              HasSubstr("unknown key 'template_refresh'"));
  EXPECT_THAT(config_error("export: [{format: json, file: a}, {format: ipfix, file: b/../a}]"),
              HasSubstr("is exported to by another entry"));
  for (const std::string_view collector :
       {"127.0.0.1", ":4739", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "h:x"}) {
    EXPECT_THAT(config_error(concat("export: [{format: ipfix, udp: '", collector, "'}]")),
                HasSubstr("test.yaml:1:31: 'udp' is"));
  }
  EXPECT_THAT(config_error("export: [{format: ipfix, udp: 'no.such.host.invalid:4739'}]"),
              HasSubstr("test.yaml:1:31: no.such.host.invalid"));
  EXPECT_THAT(config_error("export: [{format: ipfix, udp: '127.0.0.1:4739', template_refresh: 0}]"),
              HasSubstr("'template_refresh' is '0'"));
  EXPECT_THAT(config_error("export: [{format: ipfix, udp: '127.0.0.1:4739', template_refresh_s: 0}]"),
              HasSubstr("'template_refresh_s' is '0'"));
}

TEST_F(MonitorTest, reading_a_configuration_touches_no_file) {
  EXPECT_TRUE(nf::testing::make_nf(catena_nf_monitor(), kBoth, folder_.path()).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.path("flows.jsonl")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("flows.ipfix")));
}

}  // namespace
}  // namespace catena::monitor
