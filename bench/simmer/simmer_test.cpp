// SPDX-License-Identifier: Apache-2.0
#include "bench/simmer/simmer.hpp"

#include "bench/simmer/page.hpp"
#include "device/subprocess.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace catena::bench {
namespace {

using chain::FlowMode;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kQuiet = [](std::string const&) {};

std::string read(std::filesystem::path const& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Of `parts` on OpenCL, in short runs; results go into `folder`.
SimmerOptions small_options(device::TemporaryFolder const& folder, std::vector<std::string> parts) {
  SimmerOptions options;
  options.device = device::DevicePreference::of("opencl");
  options.parts = std::move(parts);
  options.quick = true;
  options.output = (folder.path() / "out").string();
  return options;
}

TEST(Simmer, loses_nothing_inside_with_back_pressure_and_something_without) {
  const auto folder = device::TemporaryFolder::create();
  ASSERT_TRUE(folder.ok()) << folder.status();
  const SimmerOptions options = small_options(*folder, {"sizes", "long"});
  const Result<SimmerResults> results = run_simmer(options, nf::builtin_nfs(), kQuiet);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->failed_cells(), 0U) << simmer_page(*results).markdown;
  EXPECT_THAT(results->alone, SizeIs(1)) << "what the first NF does, for the loads";
  ASSERT_THAT(results->cells, SizeIs(2));
  double lost = 0;
  for (SimmerCell const& cell : results->cells) {
    ASSERT_TRUE(is_measured(cell)) << cell.chain << ": " << cell.error;
    EXPECT_EQ(dropped_inside(find(cell, FlowMode::kBackpressure)).high, 0) << cell.chain;
    lost += dropped_inside(find(cell, FlowMode::kVanilla)).high;
    for (FlowRuns const& runs : cell.flows) {
      double launches = 0;
      for (NfRuns const& nf : runs.nfs) {
        launches += nf.launches_per_s.front();
      }
      EXPECT_GT(launches, 0) << "of NFs in other processes";
    }
  }
  EXPECT_GT(lost, 0) << "more than the chains can do is offered";
  EXPECT_THAT(results->long_runs, SizeIs(1));
  const auto json = nlohmann::json::parse(read(std::filesystem::path(options.output) / "results.json"));
  EXPECT_EQ(json["cells"][0]["flows"].size(), kFlowModes.size());
  const std::string page = read(std::filesystem::path(options.output) / "README.md");
  for (const char* title : {"NFs alone", "One after another", "Packets dropped inside", "What each NF does",
                            "Launches of the slowest NF", "Overload for long"}) {
    EXPECT_THAT(page, HasSubstr(title));
  }
}

TEST(Simmer, says_why_a_device_cannot_be_shared_in_a_way) {
  const auto folder = device::TemporaryFolder::create();
  ASSERT_TRUE(folder.ok()) << folder.status();
  const Result<SimmerResults> results = run_simmer(small_options(*folder, {"sharing"}), nf::builtin_nfs(), kQuiet);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_THAT(results->cells, SizeIs(6));
  for (SimmerCell const& cell : results->cells) {
    EXPECT_EQ(is_measured(cell), cell.shared_as != GpuSharedAs::kPartitioned) << cell.error;
  }
  EXPECT_THAT(simmer_page(*results).markdown,
              HasSubstr("heterogeneous, partitioned, 128 B, qt 2.8, load first NF could"));
}

SimmerCell some_cell() {
  SimmerCell cell;
  cell.part = "qt";
  cell.chain = "heterogeneous";
  cell.wire_bytes = 1472;
  cell.qt = 2.8;
  cell.flows = {{FlowMode::kVanilla,
                 {100, 100, 50},
                 {200, 200, 200},
                 {{"rt", {200, 200, 200}, {0, 0, 0}, {3, 1, 0}}, {"vpn", {100, 150, 50}, {100, 50, 150}, {1, 1, 0}}},
                 {}},
                {FlowMode::kBackpressure, {130, 110, 60}, {130, 110, 60}, {}, {{"rt", 0.5}}}};
  return cell;
}

TEST(Simmer, figures_are_medians_of_repeats) {
  const SimmerCell cell = some_cell();
  EXPECT_NEAR(above_vanilla(cell).median, 20, 1e-9);
  EXPECT_NEAR(above_vanilla(cell).high, 30, 1e-9);
  FlowRuns const& vanilla = find(cell, FlowMode::kVanilla);
  EXPECT_EQ(dropped_inside(vanilla).median, 100);
  EXPECT_EQ(drop_percent(vanilla.nfs[1]).median, 50);
  EXPECT_EQ(launch_percent(vanilla, "vpn").median, 25);
  EXPECT_EQ(launch_percent(vanilla, "ids").high, 0) << "there is none";
}

TEST(Simmer, the_page_has_the_sweep_and_what_the_paper_says) {
  SimmerResults results;
  results.cells = {some_cell()};
  const std::string page = simmer_page(results).markdown;
  EXPECT_THAT(page, HasSubstr("qt: heterogeneous, back-pressure above vanilla | +29 % | +20.0 %"));
  EXPECT_THAT(page, HasSubstr("### heterogeneous, 1472 B"));
  EXPECT_THAT(page, HasSubstr("vpn 0.1 (50.0 %)"));
}

TEST(Simmer, chains_are_what_the_paper_has) {
  SimmerSpec spec;
  spec.mode = FlowMode::kVanilla;
  spec.tuning = "pool_slots: 65536";
  for (SimmerChain const& chain : simmer_chains()) {
    spec.chain = &chain;
    const std::string text = simmer_text(spec, "opencl", {"a", "b", "c"});
    const Result<chain::ChainConfig> parsed = chain::parse_chain(text, "c.yaml");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->nfs.size(), 3U);
    EXPECT_EQ(parsed->graph.has_value(), chain.has_two_flows);
    EXPECT_EQ(parsed->flow.mode, FlowMode::kVanilla);
  }
}

TEST(Simmer, refuses_what_it_cannot_do) {
  SimmerOptions options;
  options.output = "x";
  options.device = device::DevicePreference::none();
  EXPECT_TRUE(absl::IsInvalidArgument(run_simmer(options, nf::builtin_nfs(), kQuiet).status()));
  options.device = device::DevicePreference::of("opencl");
  options.parts = {"everything"};
  EXPECT_TRUE(absl::IsInvalidArgument(run_simmer(options, nf::builtin_nfs(), kQuiet).status()));
  options.parts.clear();
  options.wire_bytes = {1518};
  EXPECT_TRUE(absl::IsInvalidArgument(run_simmer(options, nf::builtin_nfs(), kQuiet).status()));
  options.wire_bytes.clear();
  options.qts = {0.5};
  EXPECT_TRUE(absl::IsInvalidArgument(run_simmer(options, nf::builtin_nfs(), kQuiet).status()));
}

}  // namespace
}  // namespace catena::bench
