// SPDX-License-Identifier: Apache-2.0
// What a chain does must not depend on how many shards it runs in: bytes, lines and counts are those of one. A NAT may
// give other ports; then the same packets pass, for the same reasons.
#include "system/chain_runner.hpp"
#include "system/same_bytes.hpp"

#include "gpu/device/testing/faulty_device.hpp"
#include "pipeline/counts.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena::testing {
namespace {

/// Before anything asks for devices: this machine's cores stand for two of them.
const bool kTwoDevices = setenv("POCL_DEVICES", "pthread pthread", 1) == 0;

ChainOutput run(std::vector<NfText> const& nfs, std::uint32_t shards, std::uint32_t gpu_mask, std::string const& device,
                std::uint32_t workers, std::string const& capture) {
  Result<ChainOutput> output =
      run_chain({nfs, gpu_mask, capture, device, fmt::format("  shards: {}\n", shards), workers});
  EXPECT_TRUE(output.ok()) << output.status();
  return output.ok() ? *std::move(output) : ChainOutput{};
}

void expect_shards(ChainOutput const& output, std::uint32_t shards) {
  std::uint64_t packets = 0;
  for (runtime::ShardReport const& shard : output.report.work.shards) {
    packets += shard.packets;
  }
  EXPECT_EQ(output.report.work.shards.size(), shards);
  EXPECT_EQ(packets, output.report.nfs.front().packets.in);
}

/// Chains whose NFs are all content with shards by flow, with every number of shards and workers.
class ShardsOf : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ShardsOf, give_the_bytes_and_lines_of_one_for_every_placement) {
  const std::vector<NfText> nfs{kFirewall, kNids, {"dscp", "remark", "map: [{from: 0, to: 10}]"}, kRouter};
  std::string const& capture = clear_traffic()[GetParam()].capture;
  const ChainOutput expected = run(nfs, 1, 0, "none", 1, capture);
  ASSERT_GT(expected.report.tx.sent, 0U);
  for (const std::uint32_t shards : {2U, 3U, 8U}) {
    for (const std::uint32_t workers : {1U, 3U}) {
      const ChainOutput actual = run(nfs, shards, 0, "none", workers, capture);
      expect_same(actual, expected, fmt::format("{} shards, CPU", shards));
      expect_shards(actual, shards);
    }
    for (std::string const& device : device_names()) {
      for (const std::uint32_t mask : {0b1111U, 0b1001U, 0b0110U}) {
        const std::string what = fmt::format("{} shards, {:b} on {}", shards, mask, device);
        const ChainOutput actual = run(nfs, shards, mask, device, 2, capture);
        expect_same(actual, expected, what);
        expect_placed(actual, mask, what);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Traffic, ShardsOf, ::testing::Range(std::size_t{0}, std::size_t{5}),
                         [](auto const& test) { return "t" + std::to_string(test.param); });

/// A NAT chooses ports by shard: lines without what it translated to, and without what later NFs then saw.
std::string decisions(std::string const& records) {
  static const std::regex kTranslated(
      R"rx(,"[a-z_]*(from|to)":"[^"]*"|,"(spi|seq|icmp_error|backend)":("[^"]*"|\d+))rx");
  return std::regex_replace(records, kTranslated, "");
}

bool has_nat(std::vector<NfText> const& nfs) {
  return std::any_of(nfs.begin(), nfs.end(), [](NfText const& nf) { return nf.type == "nat"; });
}

void expect_as_in_one(ChainOutput const& actual, ChainOutput const& expected, std::vector<NfText> const& nfs,
                      std::string const& what) {
  if (!has_nat(nfs)) {
    expect_same(actual, expected, what);
    return;
  }
  EXPECT_EQ(first_difference(decisions(actual.records), decisions(expected.records)), "") << what;
  EXPECT_EQ(actual.capture.size(), expected.capture.size()) << what;
  EXPECT_TRUE(actual.report.accounted()) << what;
  EXPECT_EQ(actual.report.rx.slots_in_use, 0U) << what << ": slots leaked";
  EXPECT_EQ(actual.report.tx.sent, expected.report.tx.sent) << what;
}

/// Every chain of the suite of same bytes: NFs with sharders of their own, and reshard stages between them.
class ShardsOfChain : public ::testing::TestWithParam<std::size_t> {
 protected:
  ChainCase const& chain() const { return chains()[GetParam()]; }
  std::vector<NfText> nfs() const {
    std::vector<NfText> nfs = chain().nfs;
    for (NfText& nf : nfs) {
      nf.config = nf.type == "lb" ? lb_config_for(clear_traffic().front().capture) : nf.config;
    }
    return nfs;
  }
  std::string const& capture() const { return (chain().esp_input ? esp_traffic() : clear_traffic()).front().capture; }
  std::uint32_t all() const { return (1U << chain().nfs.size()) - 1; }
};

TEST_P(ShardsOfChain, do_what_one_does) {
  const std::vector<NfText> nfs = this->nfs();
  const ChainOutput expected = run(nfs, 1, 0, "none", 1, capture());
  ASSERT_GT(expected.report.tx.sent, 0U);
  for (auto const& [shards, mask] : {std::pair(2U, all() & 0b10101U), {3U, all()}, {8U, all() & 0b01010U}}) {
    expect_as_in_one(run(nfs, shards, 0, "none", 3, capture()), expected, nfs, fmt::format("{} shards, CPU", shards));
    for (std::string const& device : device_names()) {
      const std::string what = fmt::format("{} shards, {:b} on {}", shards, mask, device);
      const ChainOutput actual = run(nfs, shards, mask, device, 2, capture());
      expect_as_in_one(actual, expected, nfs, what);
      expect_placed(actual, mask, what);
    }
  }
}

TEST_P(ShardsOfChain, do_on_two_devices_what_they_do_on_one) {
  const std::vector<NfText> nfs = this->nfs();
  const ChainOutput expected = run(nfs, 1, 0, "none", 1, capture());
  for (auto const& [shards, mask] : {std::pair(2U, all()), {3U, all() & 0b10101U}}) {
    const std::string what = fmt::format("{} shards, {:b} on two devices", shards, mask);
    const ChainOutput actual = run(nfs, shards, mask, "[\"opencl:0\", \"opencl:1\"]", 2, capture());
    expect_as_in_one(actual, expected, nfs, what);
    expect_placed(actual, mask, what);
    EXPECT_THAT(actual.report.device.name, ::testing::HasSubstr(" + ")) << "one device beside the other";
  }
}

INSTANTIATE_TEST_SUITE_P(Chains, ShardsOfChain, ::testing::Range<std::size_t>(0, chains().size()),
                         [](auto const& test) { return std::string(chains()[test.param].name); });

TEST(Shards, nfs_that_want_different_ones_have_a_stage_between_them) {
  const std::vector<NfText> nfs{kNids, kNat, kEncrypt};
  const ChainOutput output = run(nfs, 3, 0, "none", 2, clear_traffic().front().capture);
  const auto is_reshard_stage = [](runtime::StageReport const& stage) { return stage.name == "reshard"; };
  EXPECT_TRUE(std::any_of(output.report.work.stages.begin(), output.report.work.stages.end(), is_reshard_stage));
  expect_shards(output, 3);
}

TEST(Shards, icmp_errors_and_echoes_come_out_as_with_one) {
  const std::vector<NfText> nfs{kFirewall, kNids, kRouter};
  std::string const& capture = combined_traffic().clear;
  const ChainOutput expected = run(nfs, 1, 0, "none", 1, capture);
  expect_same(run(nfs, 3, 0, "none", 2, capture), expected, "3 shards");
  EXPECT_EQ(run(nfs, 8, 0b111, "opencl", 3, capture).capture, expected.capture);
}

/// What a chain in four shards on two devices says after a run in which the second is lost at `call`, or none.
struct TwoDevices {
  runtime::Report report;
  std::uint64_t last_nf_on_device = 0;  ///< packets
  std::uint64_t lost_with_it = 0;       ///< more, the longer its loss takes to be seen
  bool first_failed = false;
};

TwoDevices run_on_two(std::vector<NfText> const& nfs, std::uint32_t gpu_mask,
                      std::optional<device::testing::Call> lost_at) {
  EXPECT_TRUE(kTwoDevices);
  const ChainRun chain{nfs, gpu_mask, clear_traffic()[0].capture, "[\"opencl:0\", \"opencl:1\"]", "  shards: 4\n"};
  Result<chain::ChainConfig> config =
      chain::parse_chain(chain_text(chain, (scratch_folder() / "half.pcap").string()), data_file("chain/test.yaml"));
  EXPECT_TRUE(config.ok()) << config.status();
  std::vector<device::testing::FaultyDevice*> opened;
  runtime::RunOptions options;
  options.workers = 2;
  options.open_device = [&opened](device::DevicePreference const&,
                                  std::string*) -> Result<std::unique_ptr<device::Device>> {
    auto device = std::make_unique<device::testing::FaultyDevice>(*nf::testing::devices().front());
    opened.push_back(device.get());
    return device;
  };
  auto session = runtime::Session::create(*std::move(config), options, nf::builtin_nfs());
  EXPECT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(opened.size(), 2U);
  if (lost_at) {
    opened[1]->lose(*lost_at, 3, absl::UnavailableError("fell off the bus"));
  }
  EXPECT_TRUE((*session)->run().ok());
  TwoDevices result{(*session)->report()};
  EXPECT_TRUE(result.report.accounted());
  EXPECT_EQ(result.report.rx.slots_in_use, 0U);
  result.last_nf_on_device =
      (*session)->counts().sum(runtime::counts::kDevicePackets, {{"nf", result.report.nfs.back().name}});
  result.lost_with_it = (*session)->counts().sum(runtime::counts::kDrops, {{"reason", "device_failed"}});
  result.first_failed = !opened[0]->failed().ok();
  return result;
}

/// Its shards go on on the CPU, the others on their device, and nothing is lost that was not on the lost one alone.
TEST(Shards, one_of_two_devices_that_fails_leaves_the_other_at_work) {
  using device::testing::Call;
  const std::vector<NfText> one_segment{kFirewall, kNids};
  const std::vector<NfText> with_reshard_stage{kFirewall, kNat, kMonitor, kNids};
  for (auto const& [nfs, mask] : {std::pair(one_segment, 0b11U), {with_reshard_stage, 0b1001U}}) {
    const TwoDevices both = run_on_two(nfs, mask, std::nullopt);
    ASSERT_GT(both.last_nf_on_device, 0U);
    EXPECT_EQ(both.report.nfs[0].placement, "gpu");
    for (const Call call : {Call::kEnqueue, Call::kRecord, Call::kReady}) {
      const TwoDevices one = run_on_two(nfs, mask, call);
      EXPECT_FALSE(one.first_failed);
      EXPECT_EQ(one.report.nfs[0].placement, "gpu -> cpu");
      EXPECT_THAT(one.report.nfs[0].device.error, ::testing::HasSubstr("fell off the bus"));
      EXPECT_GT(one.last_nf_on_device + one.lost_with_it, both.last_nf_on_device / 4)
          << "the shards of the first one stayed on it";
      EXPECT_LT(one.last_nf_on_device, both.last_nf_on_device);
    }
  }
}

/// From artificial traffic to nowhere: each shard has a source of its own.
runtime::Report run_to_nowhere(std::string const& rx, std::uint32_t shards) {
  ChainRun chain{{kFirewall, kNids, kRouter}, 0b101, "IN", "opencl", fmt::format("  shards: {}\n", shards)};
  std::string text = chain_text(chain, "OUT");
  for (auto const& [what, with] : {std::pair<std::string, std::string>{"pcap: IN", rx}, {"{pcap: OUT}", "null"}}) {
    text.replace(text.find(what), what.size(), with);
  }
  Result<chain::ChainConfig> config = chain::parse_chain(text, data_file("chain/test.yaml"));
  EXPECT_TRUE(config.ok()) << config.status();
  runtime::RunOptions options;
  options.workers = 3;
  auto session = runtime::Session::create(*std::move(config), options, nf::builtin_nfs());
  EXPECT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE((*session)->run().ok());
  return (*session)->report();
}

TEST(Shards, a_source_for_each_brings_the_packets_of_one) {
  for (const char* rx : {"generator: {packet: imix, flows: 300, count: 20000}",
                         "replay: {packet: [64, 700], flows: 300, count: 20000}"}) {
    const runtime::Report one = run_to_nowhere(rx, 1);
    const runtime::Report three = run_to_nowhere(rx, 3);
    EXPECT_EQ(one.rx.received, 20000U);
    EXPECT_EQ(three.rx.received, one.rx.received);
    EXPECT_EQ(three.tx.sent, one.tx.sent);
    EXPECT_TRUE(three.accounted());
    ASSERT_EQ(three.nfs.size(), one.nfs.size());
    for (std::size_t i = 0; i < one.nfs.size(); ++i) {
      EXPECT_EQ(three.nfs[i].packets.in, one.nfs[i].packets.in);
    }
    ASSERT_EQ(three.work.shards.size(), 3U);
    for (runtime::ShardReport const& shard : three.work.shards) {
      EXPECT_GT(shard.packets, 0U);
    }
  }
}

/// Ports that divide by themselves: each shard has a queue each way. (DPDK's null port claims to, and brings frames of
/// zeros to each of its queues.)
TEST(Shards, have_queues_of_their_own_where_ports_divide_what_arrives) {
  for (auto const& [nf, has_queues] :
       {std::pair<std::string, bool>{"{name: dscp, type: remark, config: {map: [{from: 0, to: 10}]}}", true},
        {"{name: mon, type: monitor, config: {}}", false}}) {
    Result<chain::ChainConfig> config = chain::parse_chain(
        fmt::format("apiVersion: catena/v1\nkind: Chain\nmetadata: {{name: queues}}\nspec:\n  shards: 3\n"
                    "  rx: {{dpdk: net_null_queues}}\n  tx: {{dpdk: net_null_queues}}\n  nfs:\n    - {}\n",
                    nf),
        data_file("chain/test.yaml"));
    ASSERT_TRUE(config.ok()) << config.status();
    runtime::RunOptions options;
    options.workers = 3;
    auto session = runtime::Session::create(*std::move(config), options, nf::builtin_nfs());
    ASSERT_TRUE(session.ok()) << session.status();
    const std::vector<std::string> lines = (*session)->start_report();
    EXPECT_EQ(has_queues, ::testing::Value(lines, ::testing::Contains(::testing::HasSubstr("3 queues"))));
    std::future<Status> run = std::async(std::launch::async, [&] { return (*session)->run(); });
    const auto busy_shards = [&session] {
      const std::vector<runtime::ShardReport> shards = (*session)->report().work.shards;
      return std::count_if(shards.begin(), shards.end(), [](runtime::ShardReport const& of) { return of.packets > 0; });
    };
    // frames that are all the same are one shard's where flows decide
    while ((*session)->progress().received < 10'000 || busy_shards() < (has_queues ? 3 : 1)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    (*session)->stop();
    EXPECT_TRUE(run.get().ok());
    const runtime::Report report = (*session)->report();
    EXPECT_TRUE(report.accounted());
    EXPECT_EQ(report.rx.slots_in_use, 0U);
    EXPECT_EQ(report.tx.sent, report.rx.received);
    EXPECT_EQ(busy_shards(), has_queues ? 3 : 1);
  }
}

}  // namespace
}  // namespace catena::testing
