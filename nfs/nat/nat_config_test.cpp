// SPDX-License-Identifier: Apache-2.0
#include "nat_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>

namespace catena::nat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<NatConfig> read(std::string_view yaml, std::uint32_t shards = 1) {
  CATENA_ASSIGN_OR_RETURN(nf::Config config, nf::Config::parse(yaml, "test.yaml"));
  config.set_shard({0, shards});
  return read_nat_config(config);
}
std::string error_of(std::string_view yaml) {
  const Result<NatConfig> config = read(yaml);
  EXPECT_FALSE(config.ok()) << yaml;
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}
/// Of a configuration with this `external:`.
std::string external_error(std::string_view value) {
  return error_of(concat("inside: [10.0.0.0/8]\nexternal: ", value, "\n"));
}
/// Of a good configuration and this line.
std::string line_error(std::string_view line) {
  return error_of(concat("inside: [10.0.0.0/8]\nexternal: [203.0.113.1]\n", line, "\n"));
}

TEST(NatConfig, defaults_are_those_of_the_rfcs) {
  const auto config = read("inside: 10.0.0.0/8\nexternal: 203.0.113.1");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->mappings.ports.first, 1024);
  EXPECT_EQ(config->mappings.ports.last, 65535);
  EXPECT_EQ(config->mappings.max_mappings, 1000000U);
  EXPECT_EQ(config->mappings.timeouts.udp, 300U);
  EXPECT_EQ(config->mappings.timeouts.tcp_established, 7440U);
  EXPECT_EQ(config->mappings.timeouts.tcp_opening, 240U);
  EXPECT_EQ(config->mappings.timeouts.tcp_closing, 240U);
  EXPECT_EQ(config->mappings.timeouts.icmp, 60U);
  EXPECT_EQ(config->mappings.max_half_open, 500000U);
  EXPECT_TRUE(config->drops_to_inside);
}

TEST(NatConfig, addresses_and_ranges_become_one_sorted_list) {
  const auto config = read(
      "inside: [10.0.0.0/8, 192.168.0.0/16]\nexternal: [203.0.113.9, 203.0.113.1-203.0.113.3]\nports: 5000-5001\n"
      "max_mappings: 7\ntimeouts: {udp: 120, icmp: 61, tcp_closing: 30}\ninbound_to_inside: pass");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->mappings.external_addresses, ElementsAre(0xCB007101, 0xCB007102, 0xCB007103, 0xCB007109));
  EXPECT_TRUE(config->realms.is_external(0xCB007103));
  EXPECT_FALSE(config->realms.is_external(0xCB007104));
  EXPECT_FALSE(config->realms.is_external(0xCB007100));
  EXPECT_TRUE(config->realms.is_inside(0xC0A8FFFF));
  EXPECT_FALSE(config->realms.is_inside(0xC0A90000));
  EXPECT_EQ(config->mappings.ports.last, 5001);
  EXPECT_EQ(config->mappings.timeouts.udp, 120U);
  EXPECT_EQ(config->mappings.timeouts.tcp_opening, 240U);
  EXPECT_EQ(config->mappings.timeouts.tcp_closing, 30U);
  EXPECT_EQ(config->mappings.max_half_open, 3U);
  EXPECT_FALSE(config->drops_to_inside);
}

TEST(NatConfig, wrong_inside_prefixes_are_refused_with_their_position) {
  const auto error = [](std::string_view value) {
    return error_of(concat("external: [203.0.113.1]\ninside: ", value, "\n"));
  };
  EXPECT_THAT(error("[10.0.0.0/33]"),
              HasSubstr("test.yaml:2:9: 'inside' is '10.0.0.0/33'; write an IPv4 address or prefix such as"));
  EXPECT_THAT(error("[10.0.0.1/8]"), HasSubstr("write 10.0.0.0/8"));
  EXPECT_THAT(error("[10.0.0.0/8 x]"), HasSubstr("prefix such as 10.0.0.0/8"));
  EXPECT_THAT(error("[ten]"), HasSubstr("'ten'"));
  EXPECT_THAT(error("['']"), HasSubstr("write an IPv4 address or prefix"));
  EXPECT_THAT(error("[]"), HasSubstr("write 1 to 64"));
  EXPECT_THAT(error("[0.0.0.0/0]"), HasSubstr("overlaps the inside prefix 0.0.0.0/0"));
  EXPECT_THAT(error_of("external: [203.0.113.1]"), HasSubstr("missing key 'inside'"));
}

TEST(NatConfig, wrong_external_addresses_are_refused_with_their_position) {
  EXPECT_THAT(external_error("[203.0.113.1/32]"), HasSubstr("test.yaml:2:11: 'external' has '203.0.113.1/32'; write"));
  EXPECT_THAT(external_error("[203.0.113.1-]"), HasSubstr("write an address or a range as"));
  EXPECT_THAT(external_error("[203.0.113.1 - 203.0.113.2]"), HasSubstr("write an address or a range as"));
  EXPECT_THAT(external_error("['']"), HasSubstr("write an address or a range as"));
  EXPECT_THAT(external_error("[203.0.113.2-203.0.113.1]"), HasSubstr("the lower end of a range first"));
  EXPECT_THAT(external_error("[224.0.0.1]"), HasSubstr("unicast"));
  EXPECT_THAT(external_error("[127.0.0.1]"), HasSubstr("unicast"));
  EXPECT_THAT(external_error("[0.0.0.0]"), HasSubstr("unicast"));
  EXPECT_THAT(external_error("[9.255.255.255-10.0.0.0]"), HasSubstr("overlaps the inside prefix 10.0.0.0/8"));
  EXPECT_THAT(external_error("[203.0.113.1, 203.0.113.0-203.0.113.2]"), HasSubstr("'external' names 203.0.113.1"));
  EXPECT_THAT(external_error("[]"), HasSubstr("0 addresses; write 1 to 1024"));
  EXPECT_THAT(external_error("[11.0.0.0-126.0.0.0]"), HasSubstr("write 1 to 1024"));
}

TEST(NatConfig, wrong_values_and_unknown_keys_are_refused) {
  for (const std::string_view ports :
       {"0-100", "100", "5-4", "1-65536", "a-b", "1-2-3", "1 - 2", "01-2", "1-02", "''"}) {
    EXPECT_THAT(line_error(concat("ports: ", ports)), HasSubstr("test.yaml:3:8: 'ports'"));
  }
  EXPECT_THAT(line_error("max_mappings: 0"), HasSubstr("1 to 16000000"));
  EXPECT_THAT(line_error("max_mappings: 16000001"), HasSubstr("1 to 16000000"));
  for (const std::string_view ports : {"[64]", "[x]", "[-1]", "['']", "[0 1]", "[0, 64]", "[01]"}) {
    EXPECT_THAT(line_error(concat("inside_ports: ", ports)), HasSubstr("test.yaml:3:15: 'inside_ports' has"));
  }
  EXPECT_THAT(line_error("inside_ports: []"), HasSubstr("name a port"));
  EXPECT_THAT(line_error("max_half_open: 0"), HasSubstr("1 to 1000000"));
  EXPECT_THAT(line_error("max_half_open: 8\nmax_mappings: 7"), HasSubstr("1 to 7"));
  EXPECT_THAT(line_error("inbound_to_inside: deny"), HasSubstr("allowed: drop, pass"));
  EXPECT_THAT(line_error("timeouts: {udp: 0}"), HasSubstr("test.yaml:3:17: 'udp'"));
  EXPECT_THAT(line_error("timeouts: {tcp: 5}"), HasSubstr("unknown key 'tcp'"));
  EXPECT_THAT(line_error("timeouts: 5"), HasSubstr("'timeouts' must be a mapping"));
  EXPECT_THAT(line_error("outside: [8.8.8.8]"), HasSubstr("unknown key 'outside'"));
}

}  // namespace
}  // namespace catena::nat
