// SPDX-License-Identifier: Apache-2.0
#include "selector.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <gtest/gtest.h>

#include <string>

namespace catena::ipsec {
namespace {

Result<Selector> parse_selector(std::string_view text) {
  auto config = nf::Config::parse(text, "sa.yaml");
  if (!config.ok()) {
    return config.status();
  }
  return read_selector(*config);
}

packet::PacketFlow flow(std::uint32_t source, std::uint32_t destination, std::uint8_t protocol, bool has_ports,
                        std::uint16_t sport, std::uint16_t dport) {
  return {packet::FlowKey::of_v4(source, destination, sport, dport, protocol), has_ports};
}

packet::PacketFlow udp_flow(std::uint32_t source, std::uint32_t destination, std::uint16_t sport, std::uint16_t dport) {
  return flow(source, destination, packet::kProtocolUdp, true, sport, dport);
}

TEST(Selector, without_keys_matches_everything) {
  const auto selector = parse_selector("{}");
  ASSERT_TRUE(selector.ok()) << selector.status();
  EXPECT_TRUE(selector->matches(udp_flow(1, 2, 3, 4)));
  EXPECT_TRUE(selector->matches(flow(0xFFFFFFFF, 0, 47, false, 0, 0)));
}

TEST(Selector, every_key_restricts) {
  const auto selector = parse_selector(
      "{source: 10.0.0.0/8, destination: 192.168.7.7, protocol: udp, source_port: 1000-2000, destination_port: 53}");
  ASSERT_TRUE(selector.ok()) << selector.status();
  EXPECT_TRUE(selector->matches(udp_flow(0x0A000001, 0xC0A80707, 1000, 53)));
  EXPECT_TRUE(selector->matches(udp_flow(0x0AFFFFFF, 0xC0A80707, 2000, 53)));
  EXPECT_FALSE(selector->matches(udp_flow(0x0B000001, 0xC0A80707, 1000, 53)));
  EXPECT_FALSE(selector->matches(udp_flow(0x0A000001, 0xC0A80708, 1000, 53)));
  EXPECT_FALSE(selector->matches(udp_flow(0x0A000001, 0xC0A80707, 999, 53)));
  EXPECT_FALSE(selector->matches(udp_flow(0x0A000001, 0xC0A80707, 2001, 53)));
  EXPECT_FALSE(selector->matches(udp_flow(0x0A000001, 0xC0A80707, 1000, 54)));
  EXPECT_FALSE(selector->matches(flow(0x0A000001, 0xC0A80707, packet::kProtocolTcp, true, 1000, 53)));
}

TEST(Selector, with_ports_never_matches_a_packet_without) {
  const auto selector = parse_selector("{source_port: 0-65535}");
  ASSERT_TRUE(selector.ok()) << selector.status();
  EXPECT_TRUE(selector->matches(udp_flow(1, 2, 0, 0)));
  EXPECT_FALSE(selector->matches(flow(1, 2, packet::kProtocolUdp, false, 0, 0)));
}

TEST(Selector, with_opaque_ports_matches_only_what_shows_none) {
  for (const char* text : {"{protocol: tcp, source_port: opaque}", "{protocol: tcp, destination_port: opaque}",
                           "{protocol: tcp, source_port: opaque, destination_port: opaque}"}) {
    const auto selector = parse_selector(text);
    ASSERT_TRUE(selector.ok()) << selector.status();
    EXPECT_FALSE(selector->matches_all());
    EXPECT_FALSE(selector->matches(flow(1, 2, packet::kProtocolTcp, true, 3, 4)));
    EXPECT_FALSE(selector->may_match(flow(1, 2, packet::kProtocolTcp, true, 3, 4)));
    EXPECT_TRUE(selector->matches(flow(1, 2, packet::kProtocolTcp, false, 0, 0)));
    EXPECT_TRUE(selector->may_match(flow(1, 2, packet::kProtocolTcp, false, 0, 0)));
    EXPECT_FALSE(selector->matches(flow(1, 2, packet::kProtocolUdp, false, 0, 0)));
  }
}

TEST(Selector, may_match_a_part_whose_ports_cannot_be_read) {
  const auto selector = parse_selector("{destination: 10.0.0.0/8, source_port: 5}");
  ASSERT_TRUE(selector.ok()) << selector.status();
  EXPECT_TRUE(selector->may_match(udp_flow(1, 0x0A000001, 5, 6)));
  EXPECT_FALSE(selector->may_match(udp_flow(1, 0x0A000001, 6, 6)));
  EXPECT_TRUE(selector->may_match(flow(1, 0x0A000001, packet::kProtocolUdp, false, 0, 0)));
  EXPECT_TRUE(selector->may_match(flow(1, 0x0A000001, packet::kProtocolTcp, false, 0, 0)));
  EXPECT_FALSE(selector->may_match(flow(1, 0x0A000001, packet::kProtocolIcmp, false, 0, 0)));  // it has none to hide
  EXPECT_FALSE(selector->may_match(flow(1, 0x0B000001, packet::kProtocolUdp, false, 0, 0)));
}

TEST(Selector, takes_protocols_by_name_and_number) {
  EXPECT_EQ(parse_selector("{protocol: any}")->protocol, -1);
  EXPECT_EQ(parse_selector("{protocol: icmp}")->protocol, 1);
  EXPECT_EQ(parse_selector("{protocol: tcp}")->protocol, 6);
  EXPECT_EQ(parse_selector("{protocol: esp}")->protocol, 50);
  EXPECT_EQ(parse_selector("{protocol: 0}")->protocol, 0);
  EXPECT_EQ(parse_selector("{protocol: 255}")->protocol, 255);
}

TEST(Selector, says_where_and_how_a_key_is_wrong) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"{source: 10.0.0.1/8}",
       "sa.yaml:1:10: 'source' is '10.0.0.1/8', which has bits set after the prefix; write "
       "10.0.0.0/8"},
      {"{destination: 10.0.0/8}", "sa.yaml:1:15: 'destination' is '10.0.0/8'; write an IPv4 address or prefix"},
      {"{source: 10.0.0.0/33}", "'source' is '10.0.0.0/33'"},
      {"{source: 10.0.0.0/}", "'source' is '10.0.0.0/'"},
      {"{source: 256.0.0.0/8}", "'source' is '256.0.0.0/8'"},
      {"{source: fe80::/10}", "'source' is 'fe80::/10'"},
      {"{protocol: sctp}", "sa.yaml:1:12: 'protocol' is 'sctp'; write any, icmp, tcp, udp, esp or a number"},
      {"{protocol: 256}", "'protocol' is '256'"},
      {"{protocol: -1}", "'protocol' is '-1'"},
      {"{source_port: 65536}", "sa.yaml:1:15: 'source_port' is '65536'; write a port"},
      {"{source_port: 5-}", "'source_port' is '5-'"},
      {"{destination_port: 9-8}", "sa.yaml:1:20: 'destination_port' is '9-8'; write a port"},
      {"{source_port: opaque, destination_port: 9}", "sa.yaml:1:41: one port is opaque and the other a range"},
      {"{protocol: icmp, source_port: opaque}", "a selector with ports needs 'protocol: tcp', 'udp' or 'any'"},
      {"{protocol: icmp, source_port: 5}", "sa.yaml:1:12: a selector with ports needs 'protocol: tcp', 'udp' or 'any'"},
      {"{sorce: any}", "sa.yaml:1:2: unknown key 'sorce'; did you mean 'source'?"},
  };
  for (Case const& test : cases) {
    const auto selector = parse_selector(test.text);
    ASSERT_FALSE(selector.ok()) << test.text;
    EXPECT_EQ(selector.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(selector.status().message()).find(test.message), std::string::npos) << selector.status();
  }
}

TEST(PacketFlow, has_ports_only_where_they_can_be_read) {
  using nf::testing::make_frame;
  std::vector<nf::testing::Frame> frames(3, make_frame(packet::kProtocolTcp, 0x01020304, 0x05060708, 9, 10, "x"));
  frames[1] = nf::testing::with_fragment(frames[1], 0x0001);  // a later one
  frames[2][23] = packet::kProtocolIcmp;
  nf::testing::PacketStore store(frames);
  const auto seen = [&store](std::uint32_t i) {
    return packet::flow_of(store.all()[i].frame(), store.all()[i].layers());
  };
  EXPECT_EQ(seen(0), flow(0x01020304, 0x05060708, packet::kProtocolTcp, true, 9, 10));
  EXPECT_EQ(seen(1), flow(0x01020304, 0x05060708, packet::kProtocolTcp, false, 0, 0));
  EXPECT_EQ(seen(2), flow(0x01020304, 0x05060708, packet::kProtocolIcmp, false, 0, 0));
}

}  // namespace
}  // namespace catena::ipsec
