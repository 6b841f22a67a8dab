// SPDX-License-Identifier: Apache-2.0
#include "evaluator.hpp"

#include "functions/match/rule_parser.hpp"

#include <catena/packet/headers.hpp>

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>

namespace catena::nids {
namespace {

constexpr const char* kAnyPacket = "ip any any -> any any";

/// The rule `alert <header> (<options> sid:1;)`, alone in its file.
match::RuleFile file_of(std::string const& options, std::string const& header = kAnyPacket) {
  match::RuleFile file =
      match::parse_rules("alert " + header + " (" + options + " sid:1;)", "x.rules", match::Variables());
  EXPECT_EQ(file.rules.size(), 1U) << header << " " << options;
  return file;
}

/// Whether the only rule, of these options, matches the payload.
bool matches(std::string const& options, std::string const& payload) {
  match::RuleFile file = file_of(options);
  match::PatternSet patterns;
  Evaluator evaluator(std::move(file.rules), patterns);
  match::MatchTable table(patterns.size());
  for (std::uint32_t number = 0; number < patterns.size(); ++number) {
    match::Pattern const& pattern = patterns.patterns()[number];
    std::string text = payload;
    if (pattern.nocase) {
      match::fold_case(text);
    }
    for (std::size_t at = 0; (at = text.find(pattern.bytes, at)) != std::string::npos; ++at) {
      table.add(number, static_cast<std::uint32_t>(at + pattern.bytes.size()));
    }
  }
  std::vector<std::uint32_t> matched;
  evaluator.match({}, static_cast<std::uint32_t>(payload.size()), table, matched);
  return !matched.empty();
}

struct MatchCase {
  const char* options;
  const char* payload;
  bool matches;
};
void expect_matches(std::initializer_list<MatchCase> cases) {
  for (MatchCase const& test : cases) {
    EXPECT_EQ(matches(test.options, test.payload), test.matches) << test.options << " on '" << test.payload << "'";
  }
}

TEST(Evaluator, offset_and_depth_bound_the_whole_content) {
  expect_matches({
      {"content:\"bc\"; offset:1; depth:2;", "abcd", true},
      {"content:\"bc\"; offset:2;", "abcd", false},
      {"content:\"cd\"; offset:1; depth:2;", "abcd", false},
      {"content:\"cd\"; offset:1; depth:3;", "abcd", true},
      {"content:\"ab\"; depth:2;", "abcd", true},
  });
}

TEST(Evaluator, distance_and_within_count_from_the_end_of_the_match_before) {
  expect_matches({
      {"content:\"ab\"; content:\"d\"; distance:1; within:1;", "abcd", true},
      {"content:\"ab\"; content:\"d\"; distance:2;", "abcd", false},
      {"content:\"ab\"; content:\"d\"; within:1;", "abcd", false},
      {"content:\"ab\"; content:\"d\"; within:2;", "abcd", true},
      {"content:\"cd\"; content:\"bc\"; distance:-3; within:2;", "abcd", true},
      {"content:\"cd\"; content:\"ab\"; distance:-3;", "abcd", false},
  });
}

TEST(Evaluator, the_first_relative_content_counts_from_the_payload) {
  expect_matches({
      {"content:\"c\"; distance:2; within:1;", "abcd", true},
      {"content:\"b\"; distance:2;", "abcd", false},
  });
}

TEST(Evaluator, a_window_before_the_payload_holds_nothing) {
  expect_matches({
      {"content:\"a\"; distance:-4; within:2;", "aaaa", false},
      {"content:!\"a\"; distance:-4; within:2;", "aaaa", true},
  });
}

TEST(Evaluator, another_occurrence_is_tried_until_all_contents_fit) {
  expect_matches({
      {"content:\"a\"; content:\"b\"; within:1;", "axaxab", true},
      {"content:\"a\"; content:\"b\"; distance:0; content:\"c\"; within:1;", "abxabc", true},
      {"content:\"a\"; content:\"a\"; distance:3; within:1; content:\"b\"; within:1;", "aaaaaab", true},
      {"content:\"a\"; content:!\"x\"; offset:90; content:!\"a\"; within:2;", "aaaa", true},
  });
}

TEST(Evaluator, a_negated_content_must_be_absent_from_its_window) {
  expect_matches({
      {"content:!\"x\";", "abcd", true},
      {"content:!\"b\";", "abcd", false},
      {"content:!\"b\"; depth:1;", "abcd", true},
      {"content:\"a\"; content:!\"c\"; within:1;", "abcd", true},
      {"content:\"a\"; content:!\"b\"; within:1;", "abcd", false},
      {"content:\"a\"; content:!\"b\"; within:1;", "abac", true},
      {"content:\"a\"; content:!\"bcd\"; within:3;", "abc", true},
  });
}

TEST(Evaluator, a_negated_content_leaves_the_place_of_the_match_before) {
  EXPECT_TRUE(matches("content:\"a\"; content:!\"x\"; within:1; content:\"b\"; within:1;", "ab"));
}

TEST(Evaluator, contents_need_a_payload_and_rules_without_any_do_not) {
  expect_matches({
      {"content:!\"x\";", "", false},
      {"msg:\"any packet\";", "", true},
      {"msg:\"any packet\";", "abc", true},
  });
}

TEST(Evaluator, startswith_and_endswith_hold_a_content_to_the_borders) {
  expect_matches({
      {"content:\"ab\"; startswith;", "abcab", true},
      {"content:\"bc\"; startswith;", "abc", false},
      {"content:!\"bc\"; startswith;", "abc", true},
      {"content:\"ab\"; endswith;", "abcab", true},
      {"content:\"ab\"; endswith;", "abcabc", false},
      {"content:!\"ab\"; endswith;", "abcabc", true},
      {"content:!\"ab\"; endswith;", "abcab", false},
      {"content:\"ab\"; startswith; endswith;", "ab", true},
      {"content:\"ab\"; startswith; endswith;", "abab", false},
      {"content:\"ab\"; depth:4; endswith;", "xxxab", false},
      {"content:\"a\"; content:\"b\"; distance:2; endswith;", "abxb", true},
      {"content:\"a\"; content:\"b\"; distance:3; endswith;", "abxb", false},
      {"content:\"a\"; content:\"b\"; within:2; endswith;", "abxb", false},
      {"content:\"a\"; content:!\"b\"; within:2; endswith;", "abxb", true},
  });
}

TEST(Evaluator, isdataat_asks_for_bytes_of_the_payload_or_behind_the_match_before) {
  expect_matches({
      {"isdataat:3;", "abcd", true},
      {"isdataat:4;", "abcd", false},
      {"isdataat:!4;", "abcd", true},
      {"isdataat:!3;", "abcd", false},
      {"isdataat:!3;", "", false},
      {"isdataat:4,relative;", "abcd", true},
      {"isdataat:5,relative;", "abcd", false},
      {"content:\"b\"; isdataat:2,relative;", "abcd", true},
      {"content:\"b\"; isdataat:3,relative;", "abcd", false},
      {"content:\"b\"; isdataat:!1,relative;", "abcb", true},
      {"content:\"b\"; isdataat:!1,relative;", "abcbc", false},
      {"content:\"b\"; isdataat:!1,relative; content:\"c\"; distance:-2; within:2;", "abxbcb", true},
      {"content:\"b\"; isdataat:2,relative; content:\"d\"; within:1;", "abbd", false},
      {"content:!\"x\"; isdataat:4,relative;", "abcd", true},
      {"content:!\"x\"; isdataat:5,relative;", "abcd", false},
  });
}

TEST(Evaluator, dsize_asks_for_a_length) {
  expect_matches({
      {"dsize:0;", "", true},
      {"dsize:2<>4; content:\"b\";", "abc", true},
      {"dsize:2<>4; content:\"b\";", "abcd", false},
      {"dsize:>2; isdataat:!3;", "abcd", false},
  });
}

/// Suricata 7.0.10 agrees with each line of this, for every header of 256 (see README.md for what it does with ! and
/// *).
TEST(Evaluator, flags_look_at_those_that_are_not_ignored) {
  const auto count = [](std::string const& flags) {
    const match::RuleFile file = file_of("flags:" + flags + ";", "tcp any any -> any any");
    int matching = 0;
    for (unsigned header = 0; header < 256; ++header) {
      PacketHeader packet;
      packet.protocol = match::Protocol::kTcp;
      packet.tcp_flags = static_cast<std::uint8_t>(header);
      matching += conditions_match(file.rules.at(0).conditions, packet, 0) ? 1 : 0;
    }
    return matching;
  };
  const std::map<std::string, int> expected{{"S", 1},    {"S,12", 4},  {"+SA", 64}, {"SA+", 64}, {"*SA", 192},
                                            {"!A", 128}, {"!PA", 192}, {"0", 1},    {"0,12", 1}, {"!0", 255},
                                            {"*0", 0},   {"CE", 1},    {"12", 1}};
  for (auto const& [flags, headers] : expected) {
    EXPECT_EQ(count(flags), headers) << flags;
  }
}

TEST(Evaluator, conditions_of_a_protocol_fit_its_packets_alone) {
  const auto conditions = [](std::string const& options) { return file_of(options).rules.at(0).conditions; };
  PacketHeader icmp;
  icmp.protocol = match::Protocol::kIcmp;
  icmp.icmp_type = 3;
  icmp.icmp_code = 1;
  PacketHeader tcp;
  tcp.protocol = match::Protocol::kTcp;
  EXPECT_TRUE(conditions_match(conditions("itype:3; icode:1;"), icmp, 0));
  EXPECT_FALSE(conditions_match(conditions("itype:3; icode:0;"), icmp, 0));
  EXPECT_FALSE(conditions_match(conditions("itype:0;"), tcp, 0));
  EXPECT_FALSE(conditions_match(conditions("icode:0;"), tcp, 0));
  EXPECT_TRUE(conditions_match(conditions("flags:0;"), tcp, 0));
  EXPECT_FALSE(conditions_match(conditions("flags:0;"), icmp, 0));
  EXPECT_TRUE(conditions_match(conditions("dsize:0;"), icmp, 0));
}

TEST(Evaluator, the_fast_pattern_is_the_content_that_a_rule_waits_for) {
  match::RuleFile file = file_of("content:\"a\"; fast_pattern; content:\"long\";");
  match::PatternSet patterns;
  const Evaluator evaluator(std::move(file.rules), patterns);
  EXPECT_EQ(evaluator.deciding_patterns(), (std::vector<bool>{true, false}));
}

TEST(Evaluator, nocase_belongs_to_one_content) {
  expect_matches({
      {"content:\"AB\"; nocase; content:\"c\";", "aBc", true},
      {"content:\"AB\"; nocase; content:\"c\";", "aBC", false},
  });
}

TEST(Evaluator, long_chains_over_repeated_bytes_end) {
  std::string chain = "content:\"a\";";
  for (int i = 0; i < 60; ++i) {
    chain += " content:\"a\"; distance:0; within:1400;";
  }
  EXPECT_TRUE(matches(chain + " content:!\"a\"; within:1;", std::string(1400, 'a')));
  EXPECT_FALSE(matches(chain + " content:\"b\"; within:1;", std::string(1400, 'a')));
}

TEST(Evaluator, a_pattern_decides_if_a_rule_waits_for_it) {
  match::RuleFile file = match::parse_rules(
      "alert ip any any -> any any (content:\"a\"; content:\"long\"; content:!\"no\"; sid:1;)\n"
      "alert ip any any -> any any (content:!\"never\"; sid:2;)\nalert ip any any -> any any (sid:3;)\n",
      "x.rules", match::Variables());
  match::PatternSet patterns;
  const Evaluator evaluator(std::move(file.rules), patterns);
  std::map<std::string, bool> deciding;
  for (std::uint32_t pattern = 0; pattern < patterns.size(); ++pattern) {
    deciding[patterns.patterns()[pattern].bytes] = evaluator.deciding_patterns()[pattern];
  }
  EXPECT_EQ(deciding, (std::map<std::string, bool>{{"a", false}, {"long", true}, {"never", true}, {"no", false}}));
}

TEST(HeaderMatch, protocol_addresses_and_ports_in_one_or_both_directions) {
  const auto rule = [](std::string const& header) { return file_of("", header).rules.at(0); };
  using packet::FlowKey;
  const PacketHeader web{match::Protocol::kTcp, {FlowKey::of_v4(0x0A000001, 0x0B000001, 4000, 80, 6), true}};
  const PacketHeader reply{match::Protocol::kTcp, {web.flow.key.reversed(), true}};
  const PacketHeader other{match::Protocol::kIp, {FlowKey::of_v4(0x0A000001, 0x0B000001, 0, 0, 47), false}};
  EXPECT_TRUE(header_matches(rule("tcp 10.0.0.0/8 any -> any 80"), web));
  EXPECT_FALSE(header_matches(rule("tcp 10.0.0.0/8 any -> any 80"), reply));
  EXPECT_TRUE(header_matches(rule("tcp 10.0.0.0/8 any <> any 80"), reply));
  EXPECT_FALSE(header_matches(rule("tcp !10.0.0.0/8 any <> 11.0.0.0/8 any"), web));
  EXPECT_FALSE(header_matches(rule("udp any any -> any any"), web));
  EXPECT_TRUE(header_matches(rule("ip any any -> any 80"), web));
  EXPECT_TRUE(header_matches(rule("ip any any -> any any"), other));
  EXPECT_FALSE(header_matches(rule("ip any any -> any 80"), other));
  EXPECT_FALSE(header_matches(rule("ip any any -> any :80"), other));
  EXPECT_FALSE(header_matches(rule("tcp any any -> any any"), other));
}

}  // namespace
}  // namespace catena::nids
