// SPDX-License-Identifier: Apache-2.0
// What a chain does must not depend on how many shards it runs in.
#include "system/chain_runner.hpp"
#include "system/same_bytes.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace catena::testing {
namespace {

using ::testing::HasSubstr;

std::vector<NfText> nfs() {
  return {{"fw", "firewall", "rules: fw.rules, default: allow"},
          {"ids", "nids", "rules: ids.rules"},
          {"dscp", "remark", "map: [{from: 0, to: 10}]"},
          {"rt", "router", "routes: routes.txt"}};
}

ChainOutput run(std::uint32_t shards, std::uint32_t gpu_mask, std::string const& device, std::uint32_t workers,
                std::string const& capture) {
  Result<ChainOutput> output =
      run_chain({nfs(), gpu_mask, capture, device, fmt::format("  shards: {}\n", shards), workers});
  EXPECT_TRUE(output.ok()) << output.status();
  return output.ok() ? *std::move(output) : ChainOutput{};
}

class ShardsOf : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ShardsOf, give_the_bytes_and_lines_of_one_for_every_placement) {
  std::string const& capture = clear_traffic()[GetParam()].capture;
  const ChainOutput expected = run(1, 0, "none", 1, capture);
  ASSERT_GT(expected.report.sent, 0U);
  for (const std::uint32_t shards : {2U, 3U, 8U}) {
    for (const std::uint32_t workers : {1U, 3U}) {
      const ChainOutput actual = run(shards, 0, "none", workers, capture);
      expect_same(actual, expected, fmt::format("{} shards, CPU", shards));
      std::uint64_t packets = 0;
      for (runtime::ShardReport const& shard : actual.report.shards) {
        packets += shard.packets;
      }
      EXPECT_EQ(actual.report.shards.size(), shards);
      EXPECT_EQ(packets, actual.report.nfs.front().in);
    }
    for (std::string const& device : device_names()) {
      for (const std::uint32_t mask : {0b1111U, 0b1001U, 0b0110U}) {
        const std::string what = fmt::format("{} shards, {:b} on {}", shards, mask, device);
        const ChainOutput actual = run(shards, mask, device, 2, capture);
        expect_same(actual, expected, what);
        expect_placed(actual, mask, what);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Traffic, ShardsOf, ::testing::Range(std::size_t{0}, std::size_t{5}),
                         [](auto const& test) { return "t" + std::to_string(test.param); });

TEST(Shards, icmp_errors_and_echoes_come_out_as_with_one) {
  std::string const& capture = combined_traffic().clear;
  const ChainOutput expected = run(1, 0, "none", 1, capture);
  expect_same(run(3, 0, "none", 2, capture), expected, "3 shards");
  EXPECT_EQ(run(8, 0b1111, "opencl", 3, capture).capture, expected.capture);
}

TEST(Shards, nfs_that_must_see_all_packets_are_refused_by_name) {
  ChainRun chain{{{"fw", "firewall", "rules: fw.rules, default: allow"},
                  {"nat", "nat", "inside: [10.0.0.0/8], external: [203.0.113.1]"},
                  {"flows", "monitor", "max_flows: 1000", false}},
                 0,
                 clear_traffic()[0].capture,
                 "none",
                 "  shards: 2\n"};
  const Result<ChainOutput> output = run_chain(chain);
  ASSERT_EQ(output.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(output.status().message()), HasSubstr("NF 'nat' (nat) has to see all packets"));
  EXPECT_THAT(std::string(output.status().message()), HasSubstr("NF 'flows' (monitor) has to see all packets"));
  EXPECT_THAT(std::string(output.status().message()), HasSubstr("write `shards: 1`"));
  chain.spec_extra = "  shards: 1\n";
  EXPECT_TRUE(run_chain(chain).ok());
}

}  // namespace
}  // namespace catena::testing
