// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptchain/adaptchain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/adaptchain/cells.hpp"
#include "bench/adaptchain/modes.hpp"
#include "bench/adaptchain/page.hpp"
#include "bench/adaptchain/results.hpp"
#include "bench/adaptchain/resume.hpp"
#include "device/subprocess.hpp"

namespace catena::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Ten launches of full batches, each with these times of its parts.
LaunchTimes launches(std::string const& nf, PhaseTimes const& us) {
  LaunchTimes times{nf, 10, 10ULL * kBatchPackets, us, us};
  std::transform(us.begin(), us.end(), times.total_us.begin(), [](double one) { return 10 * one; });
  return times;
}

Cell cell(Part part, std::string const& chain, std::string const& mode, std::uint32_t bytes, double offered_gbps,
          Repeat repeat) {
  Cell made;
  made.part = part;
  made.chain = chain;
  made.mode = mode;
  made.wire_bytes = bytes;
  made.offered_gbps = offered_gbps;
  made.repeats.push_back(std::move(repeat));
  return made;
}

/// Takes what 10 Gbps bring of frames of so many bytes.
Repeat at_10_gbps(std::uint32_t bytes) {
  Repeat repeat;
  repeat.packets_per_s = 10e9 / 8 / bytes;
  repeat.received = 10ULL * kBatchPackets;
  return repeat;
}

Cell staged(std::string const& chain, std::string const& mode, std::string const& nf, PhaseTimes const& us,
            double to_device) {
  Repeat repeat;
  repeat.launches = {launches("before", {9, 9, 9, 9, 9, 9}), launches(nf, us)};
  repeat.nf_bytes = {{nf, to_device, 9}};
  return cell(Part::kStages, chain, mode, 512, 0, repeat);
}

TEST(StagesPage, has_the_parts_of_a_batch_in_percent_of_the_batch_in_host_memory) {
  Results results;
  results.cells = {staged("IPsec", kCopyStaged, "vpn", {30, 10, 20, 25, 5, 10}, 520),
                   staged("IPsec-resident", kAdaptiveStaged, "vpn", {2, 1, 1, 25, 1, 2}, 25),
                   staged("NIDS", kCopyStaged, "ids", {30, 10, 20, 25, 5, 10}, 500)};
  const PageText page = paper_page(results, {512});
  EXPECT_THAT(
      page.markdown,
      HasSubstr("| IPsec | 25.8 -> 2.5 % | 25.0 .. 25.0 -> 2.0 .. 2.0 % | 49.2 -> 6.3 % | 50.0 .. 50.0 -> 5.0 .. "
                "5.0 % | 77.1 % | 68.0 .. 68.0 % |"));
  EXPECT_THAT(page.markdown, HasSubstr("| IPsec | 512 | host | 40.0 % | 20.0 % | 25.0 % | 5.0 % | 10.0 % | 100.0 % | "
                                       "100.0 | 520.0 | 9.0 | 10 | 1024 |"));
  EXPECT_THAT(page.markdown,
              HasSubstr("| IPsec | 512 | device | 3.0 % | 1.0 % | 25.0 % | 1.0 % | 2.0 % | 32.0 % | 32.0 "
                        "| 25.0 | 9.0 | 10 | 1024 |"));
  EXPECT_THAT(page.markdown, Not(HasSubstr("| NIDS |"))) << "its batch on the device is missing";
  EXPECT_EQ(page.figures["ipsec-parts"]["labels"], (std::vector<std::string>{"512 H", "512 D"}));
  EXPECT_TRUE(page.figures["ipsec-parts"]["stacked"]);
  EXPECT_FALSE(page.figures.contains("nids-parts"));
}

Cell batch_of_c3(std::string const& mode, PhaseTimes const& vpn, PhaseTimes const& ids, double cpu_us) {
  Repeat repeat = at_10_gbps(512);
  for (const char* stage : {"rx", "vpn", "lb", "ids", "tx"}) {
    repeat.stage_seconds.emplace_back(stage, 10 * cpu_us / 1e6);
  }
  repeat.launches = {launches("vpn", vpn), launches("ids", ids)};
  return cell(Part::kBatch, "C3", mode, 512, 10, repeat);
}

TEST(BatchPage, has_the_time_of_c3_in_percent_of_copy) {
  Results results;
  results.cells = {batch_of_c3(kCopyStaged, {0, 0, 20, 10, 5, 0}, {0, 0, 10, 5, 0, 0}, 10),
                   batch_of_c3(kAdaptive, {0, 0, 10, 10, 2, 0}, {0, 0, 0, 5, 3, 0}, 4)};
  const PageText page = paper_page(results, {512});
  EXPECT_THAT(page.markdown,
              HasSubstr("| 512 | copy, staged | 10.00 | 10.0 % | 30.0 % | 10.0 % | 10.0 % | 10.0 % | 10.0 "
                        "% | 5.0 % | 5.0 % | 10.0 % | 100.0 % | 100.0 | 10 of 1024, 10 of 1024 |"));
  EXPECT_THAT(page.markdown,
              HasSubstr("| 512 | adaptive | 10.00 | 4.0 % | 10.0 % | 4.0 % | 10.0 % | 4.0 % | 4.0 % | 5.0 "
                        "% | 5.0 % | 4.0 % | 50.0 % | 50.0 |"));
  EXPECT_THAT(page.markdown, HasSubstr("| to the device (H2D unit) | 5.9 .. 8.9 % | 10.0 .. 10.0 % |"));
  EXPECT_THAT(page.markdown, HasSubstr("| to the host and tx (D2H unit and TX) | 26.5 .. 52.3 % | 9.0 .. 9.0 % |"));
  EXPECT_THAT(page.markdown, HasSubstr("| all saved | 13.6 .. 63.7 % | 50.0 .. 50.0 % |"));
  EXPECT_EQ(page.figures["c3-batch"]["labels"], (std::vector<std::string>{"512 B", "512 A"}));
}

TEST(ConflictsPage, sets_moves_beside_those_of_the_firewall_alone) {
  Results results;
  for (auto const& [chain, us] : std::vector<std::pair<std::string, double>>{{"F", 10}, {"F-I", 15}, {"F-I-N", 17.5}}) {
    Repeat repeat = at_10_gbps(kLatencyWireBytes);
    repeat.launches = {launches("fw", {0, 0, us, 0, 0, 0})};
    results.cells.push_back(cell(Part::kConflicts, chain, kCopyStaged, kLatencyWireBytes, 10, repeat));
  }
  const PageText page = paper_page(results, {512});
  EXPECT_THAT(page.markdown, HasSubstr("| F | 10 Gbps | 10.00 | 10.0 (10.0 .. 10.0) |  |  | 10 | 1024 |"));
  EXPECT_THAT(page.markdown,
              HasSubstr("| F-I | 10 Gbps | 10.00 | 15.0 (15.0 .. 15.0) | +50.0 % | +47.5 % | 10 | 1024 |"));
  EXPECT_THAT(page.markdown, HasSubstr("| F-I-N | 10 Gbps | 10.00 | 17.5 (17.5 .. 17.5) | +75.0 % | +80.8 % |"));
  EXPECT_EQ(page.figures["conflicts"]["labels"], (std::vector<std::string>{"F", "F-I", "F-I-N"}));
}

TEST(UnitsPage, sets_latency_beside_the_papers) {
  Results results;
  results.cells = {cell(Part::kUnits, "C4", kAdaptive, 512, 0, at_10_gbps(512)),
                   cell(Part::kLatency, "C4", kAdaptive, kLatencyWireBytes, 10, at_10_gbps(kLatencyWireBytes))};
  for (Cell& made : results.cells) {
    made.unit_packets = 16;
    made.repeats[0].p50_us = 100;
    made.repeats[0].p95_us = 200;
  }
  EXPECT_THAT(paper_page(results, {512}).markdown,
              HasSubstr("| 16 | 10.00 | 100.0 (100.0 .. 100.0) | 3.8 ms | 200.0 (200.0 .. 200.0) | 5.5 ms |"));
}

TEST(NfBytesPage, has_what_each_nf_moves_and_saves) {
  const auto made = [](const char* mode, std::vector<NfBytes> bytes) {
    Repeat repeat;
    repeat.packets_per_s = 1e6;
    repeat.nf_bytes = std::move(bytes);
    return cell(Part::kThroughput, "C1", mode, 512, 0, repeat);
  };
  Results results;
  results.cells = {made(kCopyStaged, {{"vpn", 500, 0}, {"ids", 400, 0}}),
                   made(kAdaptiveStaged, {{"vpn", 500, 0}, {"ids", 20, 0}})};
  const std::string page = paper_page(results, {512}).markdown;
  EXPECT_THAT(page, HasSubstr("| C1 | nids | 63.6 .. 99.5 % | 95.0 .. 95.0 % |"));
  EXPECT_THAT(page, HasSubstr("| C1 | ipsec |  | 0.0 .. 0.0 % |"));
  EXPECT_THAT(page, HasSubstr("| frame | mode | vpn | ids |"));
  EXPECT_THAT(page, HasSubstr("| 512 | adaptive, staged | 500.0 | 20.0 |"));
}

TEST(Cells, of_every_part_are_listed_where_they_are_asked_for) {
  PaperOptions options;
  options.wire_bytes = {64, 1518};
  options.parts = {"stages", "batch", "conflicts"};
  Results results;
  list_cells(options, results);
  const auto count = [&results](Part part) {
    return std::count_if(results.cells.begin(), results.cells.end(),
                         [part](Cell const& one) { return one.part == part; });
  };
  EXPECT_EQ(count(Part::kAnchor), 2);
  EXPECT_EQ(count(Part::kStages), 2 * 2 * 2) << "two NFs, host and device, two sizes";
  EXPECT_EQ(count(Part::kBatch), 2 * 2);
  EXPECT_EQ(count(Part::kConflicts), 3 * 2);
  EXPECT_EQ(results.cells.size(), 20U);
  options.chains = {"C3", "IPsec"};
  Results some;
  list_cells(options, some);
  EXPECT_EQ(some.cells.size(), 2U + 2 + 4);
}

TEST(Resume, keeps_bytes_of_nfs_and_times_of_launches) {
  Results earlier;
  earlier.runs.push_back({"machine", "device", 1, "command"});
  earlier.cells = {staged("IPsec", kCopyStaged, "vpn", {30, 10, 20, 25, 5, 10}, 520)};
  const device::TemporaryFolder folder = *device::TemporaryFolder::create();
  const std::string path = (std::filesystem::path(folder.path()) / "results.json").string();
  std::ofstream(path) << to_json(earlier);
  auto read = read_results(path);
  ASSERT_TRUE(read.ok()) << read.status();
  Results now;
  now.cells = {earlier.cells[0]};
  now.cells[0].repeats.clear();
  const auto kept = take_over(*std::move(read), 1, now);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept, 1U);
  Repeat const& repeat = now.cells[0].repeats[0];
  ASSERT_NE(bytes_of(repeat, "vpn"), nullptr);
  EXPECT_EQ(bytes_of(repeat, "vpn")->to_device, 520);
  EXPECT_EQ(bytes_of(repeat, "vpn")->to_host, 9);
  LaunchTimes const* times = launches_of(repeat, "vpn");
  ASSERT_NE(times, nullptr);
  EXPECT_EQ(times->launches, 10U);
  EXPECT_EQ(times->packets, 10U * kBatchPackets);
  EXPECT_EQ(times->median_us, (PhaseTimes{30, 10, 20, 25, 5, 10}));
  EXPECT_EQ(times->total_us, (PhaseTimes{300, 100, 200, 250, 50, 100}));
  EXPECT_EQ(launches_of(repeat, "fw"), nullptr);
}

}  // namespace
}  // namespace catena::bench
