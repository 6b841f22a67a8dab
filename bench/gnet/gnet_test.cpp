// SPDX-License-Identifier: Apache-2.0
#include "bench/gnet/gnet.hpp"

#include "bench/gnet/page.hpp"
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

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kQuiet = [](std::string const&) {};

std::string read(std::filesystem::path const& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// One chain and one size on OpenCL, in short runs; results go into `folder`.
GnetOptions small_options(device::TemporaryFolder const& folder) {
  GnetOptions options;
  options.device = device::DevicePreference::of("opencl");
  options.chains = {"S_a"};
  options.wire_bytes = {256};
  options.quick = true;
  options.output = (folder.path() / "out").string();
  return options;
}

TEST(Gnet, measures_every_way_to_share_and_compares_what_leaves) {
  const auto folder = device::TemporaryFolder::create();
  ASSERT_TRUE(folder.ok()) << folder.status();
  const GnetOptions options = small_options(*folder);
  const Result<GnetResults> results = run_gnet(options, nf::builtin_nfs(), kQuiet);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->failed_cells(), 0U);
  EXPECT_GT(results->samples_compared(), 0U);
  EXPECT_EQ(results->samples_different(), 0U);
  ASSERT_THAT(results->cells, SizeIs(1));
  ASSERT_THAT(results->latency, SizeIs(1));
  ASSERT_THAT(results->growing, SizeIs(4));
  for (GnetCell const& cell : results->growing) {
    EXPECT_TRUE(is_measured(cell)) << cell.chain << ": " << cell.error;
    EXPECT_TRUE(std::ranges::is_sorted(cell.modes.front().cdf_us));
  }
  for (GnetCell const* cell : {&results->cells.front(), &results->latency.front()}) {
    ASSERT_THAT(cell->modes, SizeIs(kShareModes.size())) << cell->error;
    for (ModeRuns const& runs : cell->modes) {
      EXPECT_THAT(runs.packets_per_s, SizeIs(1));
      EXPECT_THAT(runs.parts, SizeIs(2)) << to_string(runs.mode);
    }
  }
  const auto json = nlohmann::json::parse(read(std::filesystem::path(options.output) / "results.json"));
  EXPECT_EQ(json["cells"][0]["modes"].size(), kShareModes.size());
  EXPECT_THAT(read(std::filesystem::path(options.output) / "README.md"), HasSubstr("S_a: scheduled above temporal"));
}

TEST(Gnet, a_way_is_above_another_by_the_median_of_pairs) {
  GnetCell cell;
  cell.modes.resize(2);
  cell.modes[0].packets_per_s = {110, 120, 90};
  cell.modes[1].mode = share::Mode::kTemporal;
  cell.modes[1].packets_per_s = {100, 100, 100};
  const Spread above = above_percent(cell, share::Mode::kScheduled, share::Mode::kTemporal, &ModeRuns::packets_per_s);
  EXPECT_NEAR(above.median, 10, 1e-9);
  EXPECT_NEAR(above.low, -10, 1e-9);
  EXPECT_NEAR(above.high, 20, 1e-9);
}

TEST(Gnet, a_cell_that_failed_is_on_the_page_with_its_reason) {
  GnetResults results;
  GnetCell& cell = results.cells.emplace_back();
  cell.chain = "S_b";
  cell.error = "the device is lost";
  EXPECT_THAT(gnet_page(results).markdown,
              HasSubstr("S_b of 64 B on 0 compute units could not be measured: the device"));
}

TEST(Gnet, what_was_measured_is_not_measured_again) {
  const auto folder = device::TemporaryFolder::create();
  ASSERT_TRUE(folder.ok()) << folder.status();
  GnetOptions options = small_options(*folder);
  options.parts = {"throughput"};
  options.profile_seconds = 0.5;
  const Result<GnetResults> first = run_gnet(options, nf::builtin_nfs(), kQuiet);
  ASSERT_TRUE(first.ok()) << first.status();
  options.resume = true;
  options.wire_bytes = {256, 128};
  const Result<GnetResults> second = run_gnet(options, nf::builtin_nfs(), kQuiet);
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_THAT(second->cells, SizeIs(2));
  EXPECT_TRUE(is_measured(second->cells[1]));
  for (std::size_t mode = 0; mode < kShareModes.size(); ++mode) {
    EXPECT_EQ(second->cells[0].modes[mode].packets_per_s, first->cells[0].modes[mode].packets_per_s);
    EXPECT_EQ(second->cells[0].modes[mode].cdf_us, first->cells[0].modes[mode].cdf_us);
  }
  options.tuning = "pool_slots: 32768";
  EXPECT_TRUE(absl::IsFailedPrecondition(run_gnet(options, nf::builtin_nfs(), kQuiet).status()));
}

TEST(Gnet, refuses_what_it_cannot_do) {
  GnetOptions options;
  options.output = "x";
  options.device = device::DevicePreference::none();
  EXPECT_TRUE(absl::IsInvalidArgument(run_gnet(options, nf::builtin_nfs(), kQuiet).status()));
  options.device = device::DevicePreference::of("opencl");
  options.chains = {"S_e"};
  EXPECT_TRUE(absl::IsInvalidArgument(run_gnet(options, nf::builtin_nfs(), kQuiet).status()));
  options.chains.clear();
  options.parts = {"growth"};
  EXPECT_TRUE(absl::IsInvalidArgument(run_gnet(options, nf::builtin_nfs(), kQuiet).status()));
  options.parts.clear();
  options.wire_bytes = {9000};
  EXPECT_TRUE(absl::IsInvalidArgument(run_gnet(options, nf::builtin_nfs(), kQuiet).status()));
}

}  // namespace
}  // namespace catena::bench
