// SPDX-License-Identifier: Apache-2.0
#include "chain/port_kind.hpp"

#include "chain/schema.hpp"
#include "nf/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>
#include <nlohmann/json.hpp>

#include <map>
#include <string>

namespace catena::chain {
namespace {

using ::testing::HasSubstr;

/// What a row is tested with.
struct Example {
  std::string rx;          ///< a value of rx; empty: not for rx
  std::string rx_error;    ///< a wrong one
  std::string rx_message;  ///< and what is said of it
  std::string tx;
  std::string option;  ///< a value of --rx or --tx; empty: no option
  std::string described;
};

std::map<std::string_view, Example> const& examples() {
  static const std::string kCapture = source_path("examples/branch-office.pcap");
  static const std::map<std::string_view, Example> kExamples{
      {"pcap",
       {concat("{pcap: ", kCapture, "}"), "{pcap: not-there.pcap}", "'pcap': no such file", "{pcap: out.pcap}",
        "pcap:out.pcap", "pcap out.pcap"}},
      {"dpdk",
       {"{dpdk: net_null0}", "{dpdk: []}", "'dpdk' lists 0 of them", "{dpdk: [net_null0, net_null1]}", "dpdk:net_null0",
        "dpdk net_null0"}},
      {"dev",
       {"{dev: eth0}", "{dev: 'a b'}", "'dev' is 'a b'", "{dev: eth0}", "dev:eth0",
        "dpdk net_af_packet_eth0,iface=eth0"}},
      {"generator", {"{generator: {}}", "{generator: {rate: -1}}", "'rate' is '-1'", "", "generator", "generator"}},
      {"replay", {"{replay: {}}", "{replay: {packet: 1}}", "'packet' is '1'", "", "", "replay"}},
      {"null", {"", "null", "'rx'", "null", "null", "null"}},
  };
  return kExamples;
}

Result<ChainConfig> chain_with(std::string const& rx, std::string const& tx) {
  return parse_chain(concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: a}\nspec:\n  rx: ", rx,
                            "\n  tx: ", tx, "\n  nfs: []\n"),
                     source_path("examples/c.yaml"));
}

std::string message_of(Result<ChainConfig> const& chain) { return std::string(chain.status().message()); }

TEST(PortKinds, each_is_read_checked_and_described) {
  for (PortKind const* kind : port_kinds()) {
    EXPECT_TRUE(kind->is_for_rx() || kind->is_for_tx()) << kind->name;
    EXPECT_NE(kind->describe, nullptr) << kind->name;
    EXPECT_TRUE(!kind->is_for_rx() || kind->rx.keys.front().name == kind->name) << kind->name;
    const auto found = examples().find(kind->name);
    if (found == examples().end()) {
      continue;  // it has a test of its own
    }
    Example const& example = found->second;
    EXPECT_EQ(kind->is_for_rx(), !example.rx.empty()) << kind->name;
    EXPECT_EQ(kind->is_for_tx(), !example.tx.empty()) << kind->name;
    EXPECT_THAT(message_of(chain_with(example.rx_error, "null")), HasSubstr(example.rx_message));
    if (kind->is_for_rx()) {
      const Result<ChainConfig> chain = chain_with(example.rx, "null");
      ASSERT_TRUE(chain.ok()) << chain.status();
      EXPECT_EQ(chain->rx.kind, kind);
      EXPECT_EQ(chain->rx.target.empty(), !kind->names_file);
      EXPECT_EQ(chain->rx.devices.empty(), !kind->is_live);
      EXPECT_FALSE(kind->describe(chain->rx).empty());
    }
    if (kind->is_for_tx()) {
      const Result<ChainConfig> chain = chain_with("{generator: {}}", example.tx);
      ASSERT_TRUE(chain.ok()) << chain.status();
      EXPECT_EQ(chain->tx.kind, kind);
    }
  }
}

TEST(PortKinds, each_with_a_word_is_an_option) {
  for (PortKind const* kind : port_kinds()) {
    const auto found = examples().find(kind->name);
    if (found == examples().end()) {
      continue;
    }
    Example const& example = found->second;
    EXPECT_EQ(kind->take_argument == nullptr, example.option.empty()) << kind->name;
    const std::string word = example.option.substr(0, example.option.find(':'));
    const Result<PortConfig> rx = parse_rx_option(example.option);
    const Result<PortConfig> tx = parse_tx_option(example.option);
    EXPECT_EQ(rx.ok(), kind->is_for_rx() && !example.option.empty()) << kind->name;
    EXPECT_EQ(tx.ok(), kind->is_for_tx() && !example.option.empty()) << kind->name;
    for (Result<PortConfig> const& port : {rx, tx}) {
      if (port.ok()) {
        EXPECT_EQ(port->kind, kind);
        EXPECT_EQ(kind->describe(*port), example.described);
      }
    }
    EXPECT_EQ(file_of_port_option(example.option).has_value(), kind->names_file) << kind->name;
    if (word != example.option) {
      EXPECT_FALSE(parse_rx_option(word + ":").ok()) << "no argument";
    }
    EXPECT_EQ(rx_option_help().find(kind->name) != std::string::npos, rx.ok()) << rx_option_help();
    EXPECT_EQ(tx_option_help().find(kind->name) != std::string::npos, tx.ok()) << tx_option_help();
  }
}

TEST(PortKinds, each_is_in_the_messages_and_in_the_schema) {
  const std::string rx = message_of(chain_with("{}", "null"));
  const std::string tx = message_of(chain_with("{generator: {}}", "{}"));
  const auto schema = nlohmann::json::parse(chain_schema(nf::Registry()))["properties"]["spec"]["properties"];
  for (PortKind const* kind : port_kinds()) {
    const std::string sample = concat(kind->name, ": ", kind->argument);
    EXPECT_EQ(rx.find(sample) != std::string::npos, kind->is_for_rx()) << rx;
    EXPECT_EQ(tx.find(sample) != std::string::npos, kind->is_for_tx() && !kind->tx.keys.empty()) << tx;
    EXPECT_EQ(schema["rx"]["properties"].contains(kind->name), kind->is_for_rx()) << kind->name;
    for (Key const& key : kind->rx.keys) {
      EXPECT_TRUE(schema["rx"]["properties"].contains(key.name)) << key.name;
    }
  }
}

TEST(PortKinds, a_misspelt_kind_and_a_key_of_another_kind_are_said) {
  EXPECT_THAT(message_of(chain_with("{genrator: {}}", "null")), HasSubstr("did you mean 'generator'?"));
  EXPECT_THAT(message_of(chain_with("{dev: eth0, loops: 2}", "null")),
              HasSubstr("'loops' goes with 'pcap' only; write `count` for artificial traffic"));
}

}  // namespace
}  // namespace catena::chain
