// SPDX-License-Identifier: Apache-2.0
#include "chain/flow.hpp"

#include "chain/chain_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <string>

namespace catena::chain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A chain of NFs a, on the CPU, and b, on the gpu. `of_b`: further keys of b.
Result<ChainConfig> parse_flow(std::string const& spec, std::string const& of_b = "") {
  return parse_chain(
      concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: g}\nspec:\n  rx: {generator: {}}\n",
             "  tx: null\n  nfs: [{name: a, type: firewall}, {name: b, type: nids, on: gpu", of_b, "}]\n", spec),
      "c.yaml");
}

Result<std::vector<FlowLimits>> limits_of(std::string const& spec, std::string const& of_b = "") {
  const Result<ChainConfig> chain = parse_flow(spec, of_b);
  EXPECT_TRUE(chain.ok()) << chain.status();
  return flow_limits(*chain, chain->tuning.unit_packets);
}

TEST(FlowLimits, where_the_file_has_no_flow_there_is_back_pressure_if_memory_has_room_for_it) {
  const auto settled = [](std::string const& spec) {
    ChainConfig chain = *parse_flow(spec);
    chain.flow.mode = flow_mode_of(chain, chain.tuning.unit_packets);
    return chain;
  };
  EXPECT_EQ(settled("").flow.mode, FlowMode::kBackpressure);
  EXPECT_EQ(flow_limits(settled(""), 256)->size(), 2U);
  EXPECT_EQ(settled("  tuning: {pool_slots: 8192}\n").flow.mode, FlowMode::kPool);
  EXPECT_THAT(flow_limits(settled("  tuning: {pool_slots: 8192}\n"), 256).value(), IsEmpty());
  EXPECT_EQ(settled("  shards: 2\n").flow.mode, FlowMode::kPool) << "half of memory each";
  EXPECT_EQ(settled("  flow: {mode: vanilla}\n").flow.mode, FlowMode::kVanilla) << "as the file says";
}

TEST(FlowLimits, where_the_file_has_flow_alone_memory_is_as_large_as_that_takes) {
  EXPECT_EQ(parse_flow("  flow: {}\n")->tuning.pool_slots, 16384U);
  EXPECT_EQ(parse_flow("  flow: {qt: 10}\n")->tuning.pool_slots, 32768U) << "256 + 2560 + 256 + 20480 + 3 * 2048";
  EXPECT_EQ(parse_flow("  shards: 3\n  flow: {}\n")->tuning.pool_slots, 65536U) << "3 * 13108";
  EXPECT_EQ(parse_flow("  flow: {qt: 1000}\n")->tuning.pool_slots, 1U << 20) << "and no more";
  EXPECT_EQ(parse_flow("")->tuning.pool_slots, 16384U);
}

TEST(FlowLimits, are_batches_of_each_nf) {
  const auto limits = limits_of("  flow: {}\n").value();
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(limits[0].batch, 256U);
  EXPECT_EQ(limits[0].slow_down, 717U) << "2.8 times 256";
  EXPECT_EQ(limits[0].fasten_up, 717U - 256U);
  EXPECT_EQ(limits[1].batch, 8U * 256U) << "a launch";
  EXPECT_EQ(limits[1].slow_down, 5735U);
  EXPECT_EQ(limits[1].share, limits[1].slow_down) << "in a list nobody has another way to send";
  EXPECT_EQ(limits[0].in_process, 2U * 256U) << "what it works on, and what comes next";
  EXPECT_EQ(limits[1].in_process, 4U * 2048U) << "three launches";
  const auto own = limits_of("  flow: {qt: 4}\n", ", batch_size: 512, qt: 2").value();
  EXPECT_EQ(own[0].slow_down, 1024U);
  EXPECT_EQ(own[1].batch, 512U);
  EXPECT_EQ(own[1].slow_down, 1024U);
}

TEST(FlowLimits, of_an_nf_in_a_process_have_a_batch_more_in_memory) {
  const std::string spec = "  tuning: {pool_slots: 16384}\n  flow: {qt: 4}\n";
  EXPECT_TRUE(limits_of(spec).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(limits_of(spec, ", isolation: process").status()));
}

TEST(FlowLimits, of_a_graph_have_shares_of_what_memory_has_more) {
  const std::string graph =
      "  graph: [{from: rx, match: {vlan: 1}, to: a}, {from: rx, to: b}, {from: [a, b], to: tx}]\n  flow: {}\n";
  const auto limits = limits_of(graph).value();
  // 16,384 slots, of which rx has 256, a 717 + 256, b 5,735 + 3 * 2,048
  const std::uint32_t left = 16384 - (256 + 717 + 256 + 5735 + 3 * 2048);
  EXPECT_EQ(limits[0].share, 717 + left / 2);
  EXPECT_EQ(limits[1].share, 5735 + left / 2);
}

TEST(FlowLimits, refuse_memory_that_is_too_small_and_say_how_much_is_not) {
  const Result<std::vector<FlowLimits>> none = limits_of("  tuning: {pool_slots: 8192}\n  flow: {}\n");
  EXPECT_THAT(std::string(none.status().message()),
              AllOf(HasSubstr("c.yaml:9:9: 'flow' lets 13108 packets wait and be worked on, and 'pool_slots' is 8192"),
                    HasSubstr("write `tuning: {pool_slots: 16384}`")));
  EXPECT_TRUE(limits_of("  tuning: {pool_slots: 16384}\n  flow: {}\n").ok());
  EXPECT_THAT(std::string(limits_of("  shards: 2\n  tuning: {pool_slots: 16384}\n  flow: {}\n").status().message()),
              AllOf(HasSubstr("in each of 2 shards"), HasSubstr("{pool_slots: 32768}")));
}

TEST(FlowLimits, refuse_memory_that_is_too_small_for_copies) {
  const std::string graph =
      "  graph: [{from: rx, to: {mirror: a}}, {from: rx, to: {mirror: tx}}, {from: rx, to: b}, "
      "{from: b, to: {mirror: tx}}, {from: [a, b], to: tx}]\n";
  EXPECT_TRUE(limits_of("  tuning: {pool_slots: 2048}\n" + graph).ok());
  const Result<std::vector<FlowLimits>> none = limits_of("  tuning: {pool_slots: 2048, unit_packets: 512}\n" + graph);
  EXPECT_THAT(std::string(none.status().message()),
              AllOf(HasSubstr("c.yaml:9:10: for copies 1536 slots are kept free, and 'pool_slots' is 2048"),
                    HasSubstr("{pool_slots: 4096}")));
}

TEST(FlowLimits, warn_of_less_than_two_batches) {
  EXPECT_THAT(flow_warnings(*parse_flow("  flow: {}\n")), IsEmpty());
  EXPECT_THAT(flow_warnings(*parse_flow("  flow: {qt: 1.5}\n")),
              ElementsAre(HasSubstr("c.yaml:8:9: 'qt' is 1.5: with less")));
  EXPECT_THAT(flow_warnings(*parse_flow("  flow: {}\n", ", qt: 1")), ElementsAre(HasSubstr("'qt' of NF 'b' is 1:")));
  EXPECT_THAT(flow_warnings(*parse_flow("  flow: {qt: 1.5, mode: vanilla}\n")), IsEmpty()) << "nobody pauses";
}

TEST(FlowLimits, wrong_values_are_errors_at_their_place) {
  EXPECT_THAT(std::string(parse_flow("  flow: {qt: 0.5}\n").status().message()), HasSubstr("c.yaml:8:14: 'qt' is"));
  EXPECT_THAT(std::string(parse_flow("  flow: {qt: many}\n").status().message()), HasSubstr("c.yaml:8:14: 'qt'"));
  EXPECT_THAT(std::string(parse_flow("  flow: {mode: vanila}\n").status().message()),
              HasSubstr("allowed: backpressure, vanilla; did you mean 'vanilla'?"));
}

class FlowKeys : public ::testing::Test {
 protected:
  void SetUp() override { folder_.write("key", "00112233445566778899aabbccddeeff\n"); }
  Result<ChainConfig> parse_flow(std::string const& flow) const {
    return parse_chain(concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: g}\nspec:\n  rx: {generator: {}}\n",
                              "  tx: null\n  nfs: [{name: a, type: firewall}]\n  flow: ", flow, "\n"),
                       folder_.path("c.yaml"));
  }
  std::string error(std::string const& flow) const { return std::string(parse_flow(flow).status().message()); }
  ScratchFolder folder_;
};

TEST_F(FlowKeys, name_the_chains_of_other_hosts) {
  const Result<ChainConfig> chain = parse_flow(
      "{signals: {listen: '192.0.2.2:7400', downstream: ['[2001:db8::3]:7400', '192.0.2.3:7401'], key: key}}");
  ASSERT_TRUE(chain.ok()) << chain.status();
  FlowSignalsConfig const& signals = *chain->flow.signals;
  EXPECT_EQ(signals.listen->text, "192.0.2.2:7400");
  ASSERT_EQ(signals.downstream.size(), 2U);
  EXPECT_EQ(signals.downstream[0].family(), AF_INET6);
  EXPECT_EQ(signals.downstream[1].family(), AF_INET);
  EXPECT_EQ(signals.key_file, folder_.path("key"));
}

TEST_F(FlowKeys, of_signals_are_errors_at_their_place) {
  EXPECT_THAT(error("{signals: {listen: here, key: key}}"),
              HasSubstr("c.yaml:8:28: 'listen' is 'here'; write an address with a port, as 192.0.2.1:7400"));
  EXPECT_THAT(error("{signals: {downstream: ['192.0.2.3'], key: key}}"), HasSubstr("'downstream' is '192.0.2.3'"));
  EXPECT_THAT(error("{signals: {listen: '0.0.0.0:7400', key: key}}"), HasSubstr("write one address of a host"));
  EXPECT_THAT(error("{signals: {listen: '[::]:7400', key: key}}"), HasSubstr("write one address of a host"));
  EXPECT_THAT(error("{signals: {listen: '192.0.2.2:0', key: key}}"), HasSubstr("and one port"));
  EXPECT_THAT(error("{signals: {listen: '192.0.2.2:7400', downstream: ['192.0.2.2:7400'], key: key}}"),
              HasSubstr("a chain does not wait for itself"));
  EXPECT_THAT(error("{signals: {key: key}}"), HasSubstr("c.yaml:8:19: 'signals' names no chain; write `listen`"));
  EXPECT_THAT(error("{signals: {listen: '192.0.2.2:7400'}}"), HasSubstr("'key'"));
  EXPECT_THAT(error("{signals: {listen: '192.0.2.2:7400', key: none}}"), HasSubstr("none"));
  EXPECT_THAT(error("{mode: vanilla, signals: {listen: '192.0.2.2:7400', key: key}}"),
              HasSubstr("'signals' goes with `mode: backpressure`"));
  folder_.write("key", "secret\n");
  const std::string of_key = error("{signals: {listen: '192.0.2.2:7400', key: key}}");
  EXPECT_THAT(of_key, HasSubstr("key:1:1: the key has 6 characters"));
  EXPECT_THAT(of_key, HasSubstr("`openssl rand -hex 32`"));
  EXPECT_THAT(of_key, ::testing::Not(HasSubstr("secret"))) << "what is in it is nobody's business";
}

TEST_F(FlowKeys, that_were_removed_say_what_takes_their_place) {
  EXPECT_THAT(error("{hook: {command: [/bin/more]}}"),
              AllOf(HasSubstr("c.yaml:8:10: unknown key 'hook'; it was removed: give an alert rule on the metric "
                              "catena_rx_paused_seconds_total"),
                    ::testing::Not(HasSubstr("command"))));
}

}  // namespace
}  // namespace catena::chain
