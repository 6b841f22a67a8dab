// SPDX-License-Identifier: Apache-2.0
#include "sa.hpp"

#include "inbound_index.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/config.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace catena::ipsec {
namespace {

using ::testing::HasSubstr;

Result<std::vector<Association>> parse(std::string_view text, Direction direction = Direction::kDecrypt) {
  auto config = nf::Config::parse(text, "sa.yaml");
  if (!config.ok()) {
    return config.status();
  }
  return read_associations(*config, direction);
}

constexpr std::string_view kMinimal = R"(associations:
  - spi: 4096
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: 000102030405060708090a0b0c0d0e0ff0f1f2f3
    authentication_key: 303132333435363738393a3b3c3d3e3f40414243
)";

/// The minimal file with one line replaced, or added if `key` is not in it.
std::string with(std::string_view key, std::string_view line) {
  std::string result;
  std::string_view rest = kMinimal;
  bool found = false;
  while (!rest.empty()) {
    std::string_view here = rest.substr(0, rest.find('\n') + 1);
    rest.remove_prefix(here.size());
    if (here.find(concat(" ", key, ":")) != std::string_view::npos) {
      found = true;
      const bool first = here.find("- ") != std::string_view::npos;
      result += line.empty() ? (first ? "  - ttl: 64\n" : "") : concat(first ? "  - " : "    ", line, "\n");
    } else {
      result += here;
    }
  }
  return found ? result : concat(result, "    ", line, "\n");
}

TEST(SaFile, fills_in_what_is_not_said) {
  const auto associations = parse(kMinimal);
  ASSERT_TRUE(associations.ok()) << associations.status();
  ASSERT_EQ(associations->size(), 1U);
  Association const& one = associations->front();
  EXPECT_EQ(one.spi, 4096U);
  EXPECT_EQ(one.source, 0xC0000201U);
  EXPECT_EQ(one.destination, 0xC6336401U);
  EXPECT_EQ(one.encryption_key, (std::array<std::uint8_t, 16>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(one.salt, (std::array<std::uint8_t, 4>{0xF0, 0xF1, 0xF2, 0xF3}));
  EXPECT_EQ(one.authentication_key.front(), 0x30);
  EXPECT_EQ(one.authentication_key.back(), 0x43);
  EXPECT_TRUE(one.selector.matches({packet::FlowKey::of_v4(1, 2, 0, 0, 3), false}));
  EXPECT_FALSE(one.udp.has_value());
  EXPECT_FALSE(one.extended_sequence);
  EXPECT_EQ(one.first_sequence, 1U);
  EXPECT_EQ(one.soft_limit, 3221225472U);
  EXPECT_EQ(one.sequence_end(), 4294967296U);
  EXPECT_TRUE(one.anti_replay);
  EXPECT_EQ(one.replay_window, 64U);
  EXPECT_EQ(one.policy.ttl, 64);
  EXPECT_EQ(one.policy.tos_keep, 0xFF);
  EXPECT_EQ(one.policy.tos_set, 0);
  EXPECT_EQ(one.policy.df_keep, 0x4000);
  EXPECT_EQ(one.policy.df_set, 0);
}

TEST(SaFile, reads_every_key) {
  const auto associations = parse(R"(associations:
  - spi: 0xC0FFEE00
    source: 10.9.8.7
    destination: 10.9.8.6
    encryption: aes-128-ctr
    authentication: hmac-sha1-96
    encryption_key: 0x000102030405060708090A0B0C0D0E0F
    salt: "00000001"
    authentication_key: 0x303132333435363738393a3b3c3d3e3f40414243
    selector: {source: 10.0.0.0/8, protocol: udp, destination_port: 53}
    udp_encapsulation: {source_port: 4501, destination_port: 4502}
    first_sequence: 4294967295
    anti_replay: false
    ttl: 255
    dscp: 46
    df: set
  - spi: 256
    source: 10.9.8.7
    destination: 10.9.8.5
    encryption_key: "101112131415161718191a1b1c1d1e1f20212223"
    authentication_key: 303132333435363738393a3b3c3d3e3f40414243
    udp_encapsulation: {}
    df: clear
    esn: true
    first_sequence: 4294967296
    soft_limit: 9223372036854775807
    replay_window: 4096
)");
  ASSERT_TRUE(associations.ok()) << associations.status();
  ASSERT_EQ(associations->size(), 2U);
  Association const& one = associations->front();
  EXPECT_EQ(one.spi, 0xC0FFEE00U);
  EXPECT_EQ(one.encryption_key[15], 15);
  EXPECT_EQ(one.salt, (std::array<std::uint8_t, 4>{0, 0, 0, 1}));
  EXPECT_TRUE(one.selector.matches({packet::FlowKey::of_v4(0x0A000001, 2, 3, 53, 17), true}));
  EXPECT_FALSE(one.selector.matches({packet::FlowKey::of_v4(0x0A000001, 2, 3, 54, 17), true}));
  ASSERT_TRUE(one.udp.has_value());
  EXPECT_EQ(one.udp->source, 4501);
  EXPECT_EQ(one.udp->destination, 4502);
  EXPECT_EQ(one.first_sequence, 0xFFFFFFFF);
  EXPECT_FALSE(one.anti_replay);
  EXPECT_EQ(one.policy.ttl, 255);
  EXPECT_EQ(one.policy.tos_keep, 3);
  EXPECT_EQ(one.policy.tos_set, 46 << 2);
  EXPECT_EQ(one.policy.df_set, 0x4000);
  Association const& two = associations->back();
  EXPECT_TRUE(two.extended_sequence);
  EXPECT_EQ(two.replay_window, 4096U);
  EXPECT_EQ(two.first_sequence, 4294967296U);
  EXPECT_EQ(two.soft_limit, 9223372036854775807U);
  ASSERT_TRUE(two.udp.has_value());
  EXPECT_EQ(two.udp->source, 4500);
  EXPECT_EQ(two.udp->destination, 4500);
  EXPECT_EQ(two.policy.df_keep, 0);
  EXPECT_EQ(two.policy.df_set, 0);
}

TEST(SaFile, says_where_and_how_it_is_wrong) {
  struct Case {
    std::string text;
    const char* message;
  };
  const Case cases[] = {
      {"{}", "sa.yaml:1:1: missing key 'associations'"},
      {"associations: []", "sa.yaml:1:15: 'associations' has 0 entries; allowed: 1 to 4096"},
      {"associations: 5", "sa.yaml:1:15: 'associations' must be a list"},
      {"associations: [5]", "sa.yaml:1:16: an entry of 'associations' must be a mapping"},
      {concat(kMinimal, "more: 1\n"), "sa.yaml:7:1: unknown key 'more'"},
      {with("spi", ""), "sa.yaml:2:5: missing key 'spi'"},
      {with("spi", "spi: 255"), "sa.yaml:2:10: 'spi' is '255'; allowed: a whole number from 256 to 4294967295"},
      {with("spi", "spi: 4294967296"), "'spi' is '4294967296'"},
      {with("source", "source: 192.0.2"), "sa.yaml:3:13: 'source' is '192.0.2'; write an IPv4 address"},
      {with("source", "source: 192.0.2.1/32"), "sa.yaml:3:13: 'source' is '192.0.2.1/32'; write an IPv4 address"},
      {with("destination", "destination: 239.1.1.1"), "sa.yaml:4:18: 'destination' must be a unicast address"},
      {with("destination", "destination: 0.0.0.0"), "'destination' must be a unicast address"},
      {with("encryption", "encryption: aes-256-ctr"),
       "sa.yaml:7:17: 'encryption' is 'aes-256-ctr'; allowed: aes-128-ctr"},
      {with("authentication", "authentication: sha2-256-128"), "allowed: hmac-sha1-96"},
      {with("encryption_key", ""), "missing key 'encryption_key'"},
      {with("encryption_key", "encryption_key: 0011"), "sa.yaml:5:21: 'encryption_key' has 4 hexadecimal digits"},
      {with("encryption_key", "encryption_key: 000102030405060708090a0b0c0d0e0f"), "missing key 'salt'"},
      {with("salt", "salt: 00112233"), "without 'salt'"},
      {with("encryption_key", "encryption_key: 000102030405060708090a0b0c0d0e0g\n    salt: 00112233"),
       "sa.yaml:5:21: 'encryption_key' must be hexadecimal digits; character 32 is not one"},
      {with("encryption_key", "encryption_key: 000102030405060708090a0b0c0d0e0f\n    salt: 0011223"),
       "sa.yaml:6:11: 'salt' has 7 hexadecimal digits; write 8"},
      {with("encryption_key", "encryption_key: 000102030405060708090a0b0c0d0e0f\n    salt: 0011223x"),
       "sa.yaml:6:11: 'salt' must be hexadecimal digits; character 8 is not one"},
      {with("authentication_key", "authentication_key: 30313233"),
       "sa.yaml:6:25: 'authentication_key' has 8 hexadecimal digits; write 40"},
      {with("first_sequence", "first_sequence: 0"), "'first_sequence' is '0'"},
      {with("first_sequence", "first_sequence: 4294967296"),
       "'first_sequence' is '4294967296'; allowed: a whole number from 1 to 4294967295"},
      {with("soft_limit", "soft_limit: 0"), "sa.yaml:7:17: 'soft_limit' is '0'"},
      {with("soft_limit", "soft_limit: 4294967296"), "'soft_limit' is '4294967296'"},
      {with("esn", "esn: maybe"), "sa.yaml:7:10: 'esn' is 'maybe'"},
      {with("esn", "esn: true\n    anti_replay: false"), "sa.yaml:8:18: 'esn' needs the replay window"},
      {with("anti_replay", "anti_replay: maybe"), "'anti_replay' is 'maybe'"},
      {with("replay_window", "replay_window: 63"),
       "sa.yaml:7:20: 'replay_window' is '63'; allowed: a whole number from 64 to 4096"},
      {with("replay_window", "replay_window: 4097"), "'replay_window' is '4097'"},
      {with("anti_replay", "anti_replay: false\n    replay_window: 64"),
       "sa.yaml:8:20: 'anti_replay: false' has no replay window"},
      {with("ttl", "ttl: 0"), "'ttl' is '0'"},
      {with("dscp", "dscp: 64"), "sa.yaml:7:11: 'dscp' is '64'; write copy or a number from 0 to 63"},
      {with("dscp", "dscp: 046"), "write copy or a number from 0 to 63; write 46 without leading zeros"},
      {with("selector", "selector: {protocol: 06}"), "a number from 0 to 255; write 6 without leading zeros"},
      {with("selector", "selector: {source_port: 1-0443}"), "write 1-443 without leading zeros"},
      {with("df", "df: maybe"), "allowed: copy, set, clear"},
      {with("udp_encapsulation", "udp_encapsulation: {port: 4500}"), "unknown key 'port'"},
      {with("udp_encapsulation", "udp_encapsulation: {source_port: 0}"), "'source_port' is '0'"},
      {with("udp_encapsulation", "udp_encapsulation: true"), "'udp_encapsulation' must be a mapping"},
      {with("selector", "selector: {source: 10.0.0.1/8}"), "sa.yaml:7:24: 'source' is '10.0.0.1/8'"},
      {with("selektor", "selektor: {}"), "sa.yaml:7:5: unknown key 'selektor'; did you mean 'selector'?"},
  };
  for (Case const& test : cases) {
    const auto associations = parse(test.text);
    ASSERT_FALSE(associations.ok()) << test.text;
    EXPECT_EQ(associations.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(associations.status().message()), HasSubstr(test.message)) << test.text;
  }
}

TEST(SaFile, never_shows_a_key) {
  const auto associations = parse(with("encryption_key", "encryption_key: feedfacefeedfacefeedfacefeedface01"));
  ASSERT_FALSE(associations.ok());
  EXPECT_THAT(std::string(associations.status().message()), ::testing::Not(HasSubstr("feedface")));
}

/// A second association, whose lines `second` gives.
std::string twice(std::string_view second) { return concat(kMinimal, second); }

TEST(SaFile, refuses_two_associations_that_cannot_be_told_apart) {
  const std::string text = twice(R"(  - spi: 4096
    source: 192.0.2.7
    destination: 198.51.100.1
    encryption_key: 101112131415161718191a1b1c1d1e1f20212223
    authentication_key: 303132333435363738393a3b3c3d3e3f40414243
)");
  for (const Direction direction : {Direction::kEncrypt, Direction::kDecrypt}) {
    const auto associations = parse(text, direction);
    ASSERT_FALSE(associations.ok());
    EXPECT_THAT(std::string(associations.status().message()),
                HasSubstr("sa.yaml:7:10: association 1 has the same spi 4096 and destination"));
  }
}

TEST(SaFile, refuses_to_encrypt_twice_with_one_key_stream) {
  const std::string text = twice(R"(  - spi: 4097
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: 000102030405060708090a0b0c0d0e0ff0f1f2f3
    authentication_key: 303132333435363738393a3b3c3d3e3f40414243
)");
  const auto associations = parse(text, Direction::kEncrypt);
  ASSERT_FALSE(associations.ok());
  EXPECT_THAT(std::string(associations.status().message()),
              HasSubstr("sa.yaml:10:21: association 1 has the same encryption key and salt"));
  EXPECT_TRUE(parse(text, Direction::kDecrypt).ok());
}

TEST(SaFile, missing_file_is_not_found) {
  EXPECT_EQ(load_associations("no/such/file.yaml", Direction::kEncrypt).status().code(), absl::StatusCode::kNotFound);
}

TEST(InboundIndex, finds_by_spi_and_destination) {
  std::vector<Association> associations(3);
  associations[0].spi = 1000;
  associations[0].destination = 5;
  associations[1].spi = 1000;
  associations[1].destination = 4;
  associations[1].udp = UdpPorts{1, 4500};
  associations[2].spi = 999;
  associations[2].destination = 5;
  const InboundIndex index(associations);
  EXPECT_EQ(index.find(1000, 5), 0U);
  EXPECT_EQ(index.find(1000, 4), 1U);
  EXPECT_EQ(index.find(999, 5), 2U);
  EXPECT_FALSE(index.find(999, 4).has_value());
  EXPECT_FALSE(index.find(0, 0).has_value());
  EXPECT_TRUE(index.receives_udp(4, 4500));
  EXPECT_FALSE(index.receives_udp(5, 4500));
  EXPECT_FALSE(index.receives_udp(4, 4501));
  EXPECT_TRUE(index.receives_udp(4));
  EXPECT_FALSE(index.receives_udp(3));
  EXPECT_FALSE(index.receives_udp(5));
  EXPECT_TRUE(index.is_tunnel_end(4));
  EXPECT_TRUE(index.is_tunnel_end(5));
  EXPECT_FALSE(index.is_tunnel_end(3));
  EXPECT_FALSE(index.is_tunnel_end(6));
}

}  // namespace
}  // namespace catena::ipsec
