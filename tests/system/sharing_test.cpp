// SPDX-License-Identifier: Apache-2.0
// NFs that share a device: who gets which part, what is refused, and what becomes of packets when parts change.
#include "gpu/device/testing/faulty_device.hpp"
#include "gpu/device/testing/remote_device.hpp"
#include "pipeline/device_servers.hpp"
#include "pipeline/session.hpp"
#include "system/chain_runner.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <sstream>
#include <thread>

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
                                                     std::vector<chain::MeasuredNf> costs = {},
                                                     runtime::SharedPartitions partitions = {}) {
  runtime::RunOptions options;
  options.workers = 2;
  options.sharing = sharing;
  options.partitions = std::move(partitions);
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
  const std::vector<runtime::PartReport> before = (*session)->report().sharing.parts;
  ASSERT_EQ(before.size(), 2U);
  EXPECT_GT(before[0].units, before[1].units) << "the NF that needs more has more";
  ASSERT_EQ((*session)->run(), absl::OkStatus());
  const runtime::Report report = (*session)->report();
  EXPECT_GE(report.sharing.changes, 1U);
  EXPECT_LT(report.sharing.parts[0].units, report.sharing.parts[1].units);
  EXPECT_EQ(report.rx.received, 60000U);
  EXPECT_TRUE(report.accounted());
  EXPECT_EQ(report.rx.slots_in_use, 0U);
  for (runtime::NfReport const& nf : report.nfs) {
    EXPECT_EQ(nf.placement, "gpu") << nf.name;
    EXPECT_TRUE(std::none_of(nf.packets.drops.begin(), nf.packets.drops.end(),
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

TEST(Sharing, by_turns_two_chains_of_a_server_send_what_they_send_from_the_cpu) {
  ChainRun run;
  run.nfs = {{"fw", "firewall", "rules: fw.rules, default: allow"}, {"rt", "router", "routes: routes.txt"}};
  run.capture = clear_traffic().front().capture;
  run.spec_extra = "  tuning: {units_per_launch: 1, unit_packets: 64}\n";  // many launches
  const std::string expected = run_chain(run).value().capture;
  const chain::SharingOptions sharing{share::Mode::kTemporal, share::Parts::kBlocks, 0};
  const auto plans = std::make_shared<share::PartitionPlans>(sharing.mode);
  device::remote::ServerPool servers({device::testing::server_options().program, runtime::server_limits(sharing), {}});
  run.gpu_mask = 0b11;
  run.device = "opencl";
  std::vector<std::unique_ptr<runtime::Session>> sessions;
  std::vector<std::future<Status>> runs;
  const auto output = [](std::string const& name) { return (scratch_folder() / concat(name, ".pcap")).string(); };
  for (const char* name : {"one", "two"}) {
    auto config = chain::parse_chain(chain_text(run, output(name)), data_file("chain/test.yaml"));
    ASSERT_TRUE(config.ok()) << config.status();
    runtime::RunOptions options;
    runtime::use_servers(servers, {name, name}, options);
    options.sharing = sharing;
    options.partitions = {plans};
    auto session = runtime::Session::create(*std::move(config), options, nf::builtin_nfs());
    ASSERT_TRUE(session.ok()) << session.status();
    sessions.push_back(*std::move(session));
  }
  for (auto const& session : sessions) {
    runs.push_back(std::async(std::launch::async, [&session] { return session->run(); }));
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].get(), absl::OkStatus());
    for (runtime::NfReport const& nf : sessions[i]->report().nfs) {
      EXPECT_EQ(nf.placement, "gpu");
    }
  }
  EXPECT_EQ(read_file(output("one")), expected);
  EXPECT_EQ(read_file(output("two")), expected);
}

TEST(Sharing, by_turns_with_other_chains_takes_a_server) {
  const chain::SharingOptions sharing{share::Mode::kTemporal, share::Parts::kNone, 0};
  const auto plans = std::make_shared<share::PartitionPlans>(sharing.mode);
  const auto session = session_of(two_nfs().value(), sharing, {}, {plans});
  EXPECT_TRUE(absl::IsUnimplemented(session.status())) << session.status();
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("use a device server"));
}

TEST(Sharing, is_of_the_device_that_it_is_whatever_chains_call_it) {
  const chain::SharingOptions sharing{share::Mode::kFair, share::Parts::kBlocks, 0};
  const auto plans = std::make_shared<share::PartitionPlans>(sharing.mode);
  chain::ChainConfig numbered = two_nfs().value();
  numbered.devices = {device::parse_preference("opencl:0").value()};
  const auto first = session_of(two_nfs().value(), sharing, {}, {plans});
  ASSERT_TRUE(first.ok()) << first.status();
  const std::uint32_t alone = (*first)->report().sharing.parts.front().units;
  // one that does not open it itself, but has it from a server
  runtime::RunOptions options;
  options.sharing = sharing;
  options.partitions = {plans};
  options.open_device = [](device::DevicePreference const&, std::string*) { return device::testing::open_remote(); };
  const auto second = runtime::Session::create(std::move(numbered), options, nf::builtin_nfs());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->report().sharing.parts.front().units, alone / 2) << "four NFs share it now";
}

TEST(Sharing, a_chain_with_little_traffic_leaves_its_part_to_one_that_packets_wait_in) {
  const auto plans = std::make_shared<share::PartitionPlans>(kScheduled.mode);
  std::vector<std::unique_ptr<runtime::Session>> sessions;
  for (const std::uint64_t rate : {std::uint64_t{0}, std::uint64_t{1000}}) {
    chain::ChainConfig config = two_nfs().value();
    config.rx.as<io::GeneratorConfig>().packets_per_s = rate;
    config.rx.as<io::GeneratorConfig>().count = 0;
    const std::vector<chain::MeasuredNf> costs = costs_of_nfs(config, nf::builtin_nfs()).value();
    auto session = session_of(std::move(config), kScheduled, costs, {plans});
    ASSERT_TRUE(session.ok()) << session.status();
    sessions.push_back(*std::move(session));
  }
  const auto units = [&sessions](std::size_t chain) { return sessions[chain]->report().sharing.parts.front().units; };
  const std::uint32_t before = units(0);
  EXPECT_NEAR(units(1), before, 1) << "nobody knows yet what comes";
  std::vector<std::future<Status>> runs;
  for (auto const& session : sessions) {
    runs.push_back(std::async(std::launch::async, [&session] { return session->run(); }));
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end && (units(0) < before * 3 / 2 || units(1) > before / 4)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_GE(units(0), before * 3 / 2);
  EXPECT_LE(units(1), before / 4);
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    sessions[i]->stop();
    EXPECT_EQ(runs[i].get(), absl::OkStatus());
    EXPECT_TRUE(sessions[i]->report().accounted());
  }
}

TEST(Sharing, parts_that_cannot_be_taken_are_tried_again_for_as_long_as_it_takes) {
  using device::testing::Call;
  constexpr int kFailures = 4;
  const std::vector<share::Part> before{{0, {512, 1024}}, {512, {512, 1024}}};
  const std::vector<share::Part> after{{0, {256, 1}}, {256, {768, 1}}};  // one unit a launch, and three
  device::testing::FaultyDevice* faulty = nullptr;
  std::atomic<int> looks{0};
  std::atomic<bool> is_taken{false};
  std::atomic<std::int64_t> taken_at_ns{0};
  runtime::RunOptions options;
  options.trace = true;
  options.open_device = [&](device::DevicePreference const&, std::string*) -> Result<std::unique_ptr<device::Device>> {
    auto device = std::make_unique<device::testing::FaultyDevice>(*nf::testing::devices().front());
    faulty = device.get();
    return device;
  };
  options.sharing = {share::Mode::kFair, share::Parts::kBlocks, 0};
  options.partitions.given = runtime::GivenParts{
      [&] {
        const int look = looks++;
        if (look == 0) {
          return before;  // at the start
        }
        if (look <= kFailures) {
          faulty->fail(Call::kCreateStream, 1, absl::ResourceExhaustedError("no memory for it now"));
        }
        return after;
      },
      [&](std::vector<share::Part> const& parts) {
        taken_at_ns = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
        is_taken = parts == after;
      }};
  chain::ChainConfig config = two_nfs().value();
  config.rx.as<io::GeneratorConfig>().count = 0;
  config.rx.as<io::GeneratorConfig>().packets_per_s = 0;  // full launches
  const auto session = runtime::Session::create(std::move(config), options, nf::builtin_nfs());
  ASSERT_TRUE(session.ok()) << session.status();
  std::ostringstream log;
  const auto logger = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  auto run = std::async(std::launch::async, [&session] { return (*session)->run(); });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end && !is_taken) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(is_taken);
  EXPECT_GT(looks, kFailures);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // launches by those parts
  (*session)->stop();
  EXPECT_EQ(run.get(), absl::OkStatus());
  spdlog::set_default_logger(logger);
  const std::string said = log.str();
  const std::size_t first = said.find("no memory for it now");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(said.find("no memory for it now", first + 1), std::string::npos) << "once: " << said;
  const std::vector<runtime::StageTrace> traces = (*session)->traces();
  const auto first_nf = std::ranges::find(traces, "fw", &runtime::StageTrace::name);
  ASSERT_NE(first_nf, traces.end());
  std::uint32_t largest_before = 0;
  std::uint32_t largest_since = 0;
  for (trace::Span const& span : first_nf->log->spans()) {
    if (std::string_view(span.what) == "submit") {
      std::uint32_t& largest = span.begin_ns > taken_at_ns ? largest_since : largest_before;
      largest = std::max(largest, span.packets);
    }
  }
  EXPECT_GT(largest_before, 256U);
  EXPECT_GT(largest_since, 0U);
  EXPECT_LE(largest_since, 256U);
  EXPECT_TRUE((*session)->report().accounted());
}

}  // namespace
}  // namespace catena::testing
