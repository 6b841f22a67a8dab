// SPDX-License-Identifier: Apache-2.0
// NFs that share a device: who gets which part, what is refused, and what becomes of packets when parts change.
#include "device/testing/remote_device.hpp"
#include "runtime/session.hpp"
#include "system/chain_runner.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>

namespace catena::testing {
namespace {

using ::testing::HasSubstr;

const chain::SharingOptions kScheduled{share::Mode::kScheduled, share::Parts::kBlocks, 0};

Result<chain::ChainConfig> two_nfs(std::string const& of_router = "") {
  return chain::parse_chain(
      concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: shared}\nspec:\n",
             "  rx: {generator: {packet: imix, rate: 30000, count: 60000}}\n  tx: null\n  device: opencl\n  nfs:\n",
             "    - {name: fw, type: firewall, on: gpu, config: {rules: fw.rules, default: allow}}\n",
             "    - {name: rt, type: router, on: gpu, config: {routes: routes.txt}", of_router, "}\n"),
      data_file("chain/test.yaml"));
}

Result<std::unique_ptr<runtime::Session>> session_of(chain::ChainConfig config, chain::SharingOptions const& sharing,
                                                     std::vector<chain::MeasuredNf> costs = {}) {
  chain::RunOptions options;
  options.workers = 2;
  options.sharing = sharing;
  options.sync.profile.nfs = std::move(costs);
  return runtime::Session::create(std::move(config), options, nf::builtin_nfs());
}

TEST(Sharing, parts_follow_the_traffic_and_no_packet_is_lost_or_dropped_for_that) {
  chain::ChainConfig config = two_nfs().value();
  std::vector<chain::MeasuredNf> costs = costs_of_nfs(config, nf::builtin_nfs()).value();
  // what is expected of an IMIX, 358 bytes a packet, and what the generator makes of it, 362, are on two sides of this
  constexpr std::uint32_t kBetween = 360;
  for (std::size_t i = 0; i < 2; ++i) {
    chain::MeasuredNf small = costs[i];
    small.packet_bytes = kBetween;
    small.cost.kernel.slope = i == 0 ? 2000 : 200;
    costs[i].cost.kernel.slope = i == 0 ? 200 : 2000;
    costs.push_back(small);
  }
  const auto session = session_of(std::move(config), kScheduled, costs);
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<runtime::PartReport> before = (*session)->report().parts;
  ASSERT_EQ(before.size(), 2U);
  EXPECT_GT(before[0].units, before[1].units) << "the NF that needs more has more";
  ASSERT_EQ((*session)->run(), absl::OkStatus());
  const runtime::Report report = (*session)->report();
  EXPECT_EQ(report.sharing_changes, 1U);
  EXPECT_LT(report.parts[0].units, report.parts[1].units);
  EXPECT_EQ(report.received, 60000U);
  EXPECT_TRUE(report.accounted());
  EXPECT_EQ(report.slots_in_use, 0U);
  for (runtime::NfReport const& nf : report.nfs) {
    EXPECT_EQ(nf.placement, "gpu") << nf.name;
    EXPECT_TRUE(std::none_of(nf.drops.begin(), nf.drops.end(),
                             [](io::NamedCount const& drop) { return drop.name == "device_failed"; }));
  }
}

TEST(Sharing, a_schedule_needs_to_know_what_nfs_cost) {
  const auto session = session_of(two_nfs().value(), kScheduled);
  EXPECT_TRUE(absl::IsFailedPrecondition(session.status())) << session.status();
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("NF 'fw'"));
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("catena profile --nf"));
}

TEST(Sharing, a_limit_that_no_part_meets_is_refused_with_the_nf_s_name) {
  chain::ChainConfig config = two_nfs(", latency_limit_us: 1").value();
  std::vector<chain::MeasuredNf> costs = costs_of_nfs(config, nf::builtin_nfs()).value();
  const auto session = session_of(std::move(config), kScheduled, costs);
  EXPECT_TRUE(absl::IsResourceExhausted(session.status())) << session.status();
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("NF rt"));
}

TEST(Sharing, parts_that_a_device_cannot_make_are_refused) {
  const auto green = session_of(two_nfs().value(), {share::Mode::kFair, share::Parts::kGreen, 0});
  EXPECT_TRUE(absl::IsUnimplemented(green.status())) << green.status();
  const auto few = session_of(two_nfs().value(), {share::Mode::kUncoordinated, share::Parts::kNone, 1});
  EXPECT_TRUE(absl::IsUnimplemented(few.status())) << few.status();
}

/// Two chains that share the device of one server, and what became of them.
struct TwoChains {
  std::vector<trace::Span> kernels;  ///< of both, by when they began
  std::vector<std::string> captures;
};

Result<TwoChains> run_two(share::Mode mode) {
  device::remote::ServerLimits limits = chain::server_limits(chain::SharingOptions{mode});
  device::remote::ServerPool servers({device::testing::server_options().program, limits, {}});
  const chain::SharingOptions sharing{mode, share::Parts::kBlocks, 0, std::make_shared<share::Divisions>(mode)};
  std::vector<std::unique_ptr<runtime::Session>> sessions;
  TwoChains result;
  for (const char* name : {"one", "two"}) {
    ChainRun run;
    run.nfs = {{"fw", "firewall", "rules: fw.rules, default: allow"}, {"rt", "router", "routes: routes.txt"}};
    run.gpu_mask = 0b11;
    run.capture = clear_traffic().front().capture;
    run.device = "opencl";
    run.spec_extra = "  tuning: {units_per_launch: 1, unit_packets: 64}\n";  // many launches
    const std::string output = (scratch_folder() / concat(to_string(mode), name, ".pcap")).string();
    result.captures.push_back(output);
    CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config,
                            chain::parse_chain(chain_text(run, output), data_file("chain/test.yaml")));
    chain::RunOptions options;
    chain::use_servers(servers, name, options);
    options.trace = true;
    options.sharing = sharing;
    CATENA_ASSIGN_OR_RETURN(sessions.emplace_back(),
                            runtime::Session::create(std::move(config), options, nf::builtin_nfs()));
  }
  auto other = std::async(std::launch::async, [&sessions] { return sessions.back()->run(); });
  Status status = sessions.front()->run();
  status.Update(other.get());
  CATENA_RETURN_IF_ERROR(status);
  for (auto const& session : sessions) {
    for (runtime::StageTrace const& stage : session->traces()) {
      for (trace::Span const& span : stage.log->spans()) {
        if (std::string_view(span.what) == "kernel") {
          result.kernels.push_back(span);
        }
      }
    }
  }
  std::ranges::sort(result.kernels, {}, &trace::Span::begin_ns);
  return result;
}

TEST(Sharing, by_turns_no_kernels_of_two_chains_of_a_server_overlap_and_bytes_are_the_same) {
  ChainRun on_cpu;
  on_cpu.nfs = {{"fw", "firewall", "rules: fw.rules, default: allow"}, {"rt", "router", "routes: routes.txt"}};
  on_cpu.capture = clear_traffic().front().capture;
  const std::string expected = run_chain(on_cpu).value().capture;
  const auto result = run_two(share::Mode::kTemporal);
  ASSERT_TRUE(result.ok()) << result.status();
  for (std::string const& capture : result->captures) {
    EXPECT_EQ(read_file(capture), expected);
  }
  ASSERT_GT(result->kernels.size(), 20U);
  // both chains' device clocks are set beside the host's to some microseconds
  constexpr std::int64_t kClocks = 20'000;
  std::size_t overlaps = 0;
  for (std::size_t i = 1; i < result->kernels.size(); ++i) {
    overlaps += result->kernels[i].begin_ns + kClocks < result->kernels[i - 1].end_ns ? 1 : 0;
  }
  EXPECT_EQ(overlaps, 0U) << "of " << result->kernels.size();
}

TEST(Sharing, by_turns_with_other_chains_takes_a_server) {
  chain::SharingOptions sharing{share::Mode::kTemporal, share::Parts::kNone, 0};
  sharing.divisions = std::make_shared<share::Divisions>(sharing.mode);
  const auto session = session_of(two_nfs().value(), sharing);
  EXPECT_TRUE(absl::IsUnimplemented(session.status())) << session.status();
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("takes a device server"));
}

TEST(Sharing, is_of_the_device_that_it_is_whatever_chains_call_it) {
  chain::SharingOptions sharing{share::Mode::kFair, share::Parts::kBlocks, 0};
  sharing.divisions = std::make_shared<share::Divisions>(sharing.mode);
  chain::ChainConfig numbered = two_nfs().value();
  numbered.devices = {device::parse_preference("opencl:0").value()};
  const auto first = session_of(two_nfs().value(), sharing);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::uint32_t alone = (*first)->report().parts.front().units;
  // one that does not open it itself, but has it from a server
  chain::RunOptions options;
  options.sharing = sharing;
  options.open_device = [](device::DevicePreference const&, std::string*) { return device::testing::open_remote(); };
  const auto second = runtime::Session::create(std::move(numbered), options, nf::builtin_nfs());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->report().parts.front().units, alone / 2) << "four NFs share it now";
}

TEST(Sharing, is_of_one_device) {
  chain::ChainConfig config = two_nfs().value();
  config.devices = {device::DevicePreference::of("opencl", 0), device::DevicePreference::of("opencl", 0)};
  config.shards = 2;
  const auto session = session_of(std::move(config), {share::Mode::kFair, std::nullopt, 0});
  EXPECT_TRUE(absl::IsInvalidArgument(session.status())) << session.status();
}

}  // namespace
}  // namespace catena::testing
