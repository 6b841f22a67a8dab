// SPDX-License-Identifier: Apache-2.0
#include "functions/classify/rule_parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/harness.hpp>

#include <string>

#include "functions/bad_text.hpp"

namespace catena::classify {
namespace {

using catena::testing::BadText;
using catena::testing::expect_refused;
using ::testing::StartsWith;

constexpr PortRange kAny{};
constexpr packet::Ipv4Prefix kEverybody{0, 0};

Result<RuleFile> parse(std::string_view text, std::string_view file) { return parse_rules(text, file); }

struct GoodCase {
  std::string name;
  std::string line;
  Rule rule;
};
class GoodRule : public ::testing::TestWithParam<GoodCase> {};

TEST_P(GoodRule, is_read) {
  const auto file = parse_rules(GetParam().line, "fw.rules", Action::kDeny);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->rules.size(), 1U);
  EXPECT_TRUE(file->rules[0] == GetParam().rule);
}

INSTANTIATE_TEST_SUITE_P(
    Lines, GoodRule,
    ::testing::Values(
        GoodCase{"readable",
                 "deny tcp 10.0.0.0/8 any 1024-65535 443",
                 {{0x0A000000, 8}, kEverybody, {1024, 65535}, {443, 443}, 6, 0xFF, Action::kDeny}},
        GoodCase{"allow_udp_addresses",
                 "allow\tudp 1.2.3.4   255.255.255.255/32 any 0-0 # why\r\n",
                 {{0x01020304, 32}, {0xFFFFFFFF, 32}, kAny, {0, 0}, 17, 0xFF, Action::kAllow}},
        GoodCase{"any_protocol_with_ports",
                 "deny any any any 1 65535",
                 {kEverybody, kEverybody, {1, 1}, {65535, 65535}, 0, 0, Action::kDeny}},
        GoodCase{"ip", "deny ip any any any any", {kEverybody, kEverybody, kAny, kAny, 0, 0, Action::kDeny}},
        GoodCase{"icmp", "deny icmp any any any any", {kEverybody, kEverybody, kAny, kAny, 1, 0xFF, Action::kDeny}},
        GoodCase{"esp", "deny esp any any any any", {kEverybody, kEverybody, kAny, kAny, 50, 0xFF, Action::kDeny}},
        GoodCase{"ah", "deny ah any any any any", {kEverybody, kEverybody, kAny, kAny, 51, 0xFF, Action::kDeny}},
        GoodCase{"gre", "deny gre any any any any", {kEverybody, kEverybody, kAny, kAny, 47, 0xFF, Action::kDeny}},
        GoodCase{"protocol_0", "deny 0 any any any any", {kEverybody, kEverybody, kAny, kAny, 0, 0xFF, Action::kDeny}},
        GoodCase{
            "protocol_255", "deny 255 any any any any", {kEverybody, kEverybody, kAny, kAny, 255, 0xFF, Action::kDeny}},
        GoodCase{"tcp_by_number_with_port",
                 "deny 6 any any any 80",
                 {kEverybody, kEverybody, kAny, {80, 80}, 6, 0xFF, Action::kDeny}},
        GoodCase{"full_range_is_any_for_all",
                 "deny icmp any any any any",
                 {kEverybody, kEverybody, {0, 65535}, {0, 65535}, 1, 0xFF, Action::kDeny}},
        GoodCase{"classbench",
                 "@87.1.32.118/32\t87.1.36.96/28\t7648 : 7648\t1024 : 65535\t0x11/0xFF\t0x0000/0x0000\t",
                 {{0x57012076, 32}, {0x57012460, 28}, {7648, 7648}, {1024, 65535}, 17, 0xFF, Action::kDeny}},
        GoodCase{"classbench_without_flags_decimal",
                 "@16.32.1.0/24 2.1.1.0/24 0 : 65535 0 : 65535 0/0",
                 {{0x10200100, 24}, {0x02010100, 24}, kAny, kAny, 0, 0, Action::kDeny}},
        GoodCase{"classbench_ranges_without_blanks",
                 "  @0.0.0.0/0 0.0.0.0/0 1:2 3: 4 6/255#c",
                 {kEverybody, kEverybody, {1, 2}, {3, 4}, 6, 0xFF, Action::kDeny}},
        GoodCase{"classbench_protocol_mask",
                 "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0X0a/0x0F",
                 {kEverybody, kEverybody, kAny, kAny, 10, 0x0F, Action::kDeny}},
        GoodCase{"classbench_ports_of_a_protocol_without_ports",
                 "@0.0.0.0/0 0.0.0.0/0 1 : 1 0 : 65535 0x01/0xFF",
                 {kEverybody, kEverybody, {1, 1}, kAny, 1, 0xFF, Action::kDeny}}),
    [](auto const& tested) { return tested.param.name; });

TEST(RuleFile, both_forms_mix_and_keep_their_order) {
  const auto file = parse_rules(
      "# head\n"
      "\n"
      "allow udp any any any 1\n"
      "@0.0.0.0/0 0.0.0.0/0 0 : 65535 2 : 2 0x11/0xFF 0x0000/0x0000\n"
      "  \t\n"
      "deny udp any any any 3  # tail\n"
      "@0.0.0.0/0 0.0.0.0/0 0 : 65535 4 : 4 0x06/0xFF 0x0000/0x0200",
      "fw.rules", Action::kAllow);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<std::pair<int, Action>> seen;
  for (Rule const& rule : file->rules) {
    seen.emplace_back(rule.dport.first, rule.action);
  }
  EXPECT_THAT(seen, ::testing::ElementsAre(std::pair(1, Action::kAllow), std::pair(2, Action::kAllow),
                                           std::pair(3, Action::kDeny), std::pair(4, Action::kAllow)));
  EXPECT_EQ(file->flagged_lines, 1U);
}

class BadRule : public ::testing::TestWithParam<BadText> {};

TEST_P(BadRule, is_an_error_with_position_and_advice) { expect_refused(GetParam(), parse); }

INSTANTIATE_TEST_SUITE_P(
    Readable, BadRule,
    ::testing::Values(
        BadText{"action", "allow any any any any any\n drop tcp any any any any\n", "2:2",
                "'drop' begins no rule; did you mean 'deny'?"},
        BadText{"action_accept", "accept tcp any any any any\n", "1:1", "did you mean 'allow'?"},
        BadText{"action_upper_case", "ALLOW tcp any any any any\n", "1:1", "did you mean 'allow'?"},
        BadText{"action_no_word", "log tcp any any any any\n", "1:1", "'log' begins no rule; write a rule as"},
        BadText{"action_case", "DENY tcp any any any any\n", "1:1", "the action is allow or deny"},
        BadText{"action_alone", "deny\n", "1:5", "the protocol is missing; write a rule as `action protocol"},
        BadText{"protocol", "deny sctp any any any any\n", "1:6", "'sctp' is no protocol; write tcp, udp"},
        BadText{"protocol_256", "deny 256 any any any any\n", "1:6", "a number from 0 to 255"},
        BadText{"protocol_negative", "deny -1 any any any any\n", "1:6", "'-1' is no protocol"},
        BadText{"source_missing", "deny tcp # any\n", "1:10", "the source is missing"},
        BadText{"source_octet", "deny tcp 10.0.0.256 any any any\n", "1:10", "'10.0.0.256' is no source"},
        BadText{"source_length", "deny tcp 10.0.0.0/33 any any any\n", "1:10", "'10.0.0.0/33' is no source"},
        BadText{"source_length_missing", "deny tcp 10.0.0.0/ any any any\n", "1:10", "is no source"},
        BadText{"source_name", "deny tcp localhost any any any\n", "1:10", "such as 10.0.0.0/8, an address, or any"},
        BadText{"source_ipv6", "deny tcp 2001:db8::/32 any any any\n", "1:10", "is no source"},
        BadText{"source_host_bits", "deny tcp 10.0.0.1/8 any any any\n", "1:10", "write 10.0.0.0/8, or a longer"},
        BadText{"anything", "deny tcp anything any any any\n", "1:10", "'anything' is no source"},
        BadText{"destination_missing", "deny tcp any\n", "1:13", "the destination is missing"},
        BadText{"destination_host_bits", "deny tcp any 0.0.0.1/0 any any\n", "1:14", "write 0.0.0.0/0"},
        BadText{"sport_missing", "deny tcp any any\n", "1:17", "the source port is missing"},
        BadText{"sport_65536", "deny tcp any any 65536 any\n", "1:18", "'65536' is no source port"},
        BadText{"protocol_leading_zero", "deny 06 any any any any\n", "1:6", "write 6 without leading zeros"},
        BadText{"length_leading_zero", "deny tcp 10.0.0.0/08 any any any\n", "1:10", "write 10.0.0.0/8 without"},
        BadText{"sport_leading_zero", "deny tcp any any 01 any\n", "1:18", "write 1 without leading zeros"},
        BadText{"dport_leading_zero", "deny tcp any any any 1-0443\n", "1:22", "write 1-443 without leading zeros"},
        BadText{"sport_name", "deny tcp any any http any\n", "1:18", "write any, a number from 0 to 65535, or a range"},
        BadText{"sport_open_range", "deny tcp any any 80- any\n", "1:18", "'80-' is no source port"},
        BadText{"sport_no_start", "deny tcp any any -80 any\n", "1:18", "'-80' is no source port"},
        BadText{"sport_list", "deny tcp any any 80,81 any\n", "1:18", "'80,81' is no source port"},
        BadText{"sport_reversed", "deny tcp any any 81-80 any\n", "1:18", "write the lower port first: 80 and 81"},
        BadText{"sport_overflow", "deny tcp any any 18446744073709551616 any\n", "1:18", "is no source port"},
        BadText{"dport_missing", "deny tcp any any any\n", "1:21", "the destination port is missing"},
        BadText{"dport_range_too_far", "deny tcp any any any 1-70000\n", "1:22", "'1-70000' is no destination port"},
        BadText{"icmp_port", "deny icmp any any any 8\n", "1:23", "protocol 1 have no ports; write any"},
        BadText{"number_port", "deny 132 any any 5 any\n", "1:18", "protocol 132 have no ports"},
        BadText{"seventh_word", "deny tcp any any any any log\n", "1:26", "unexpected 'log' after the rule"},
        BadText{"nul", std::string("deny tcp any any any any\n\0\n", 27), "2:1", "'\\x00' begins no rule"},
        BadText{"empty", "", "1:1", "no rules; write a rule"},
        BadText{"only_comments", "# nothing\n\n#\n", "1:1", "no rules"}),
    catena::testing::name_of_case);

INSTANTIATE_TEST_SUITE_P(
    ClassBench, BadRule,
    ::testing::Values(
        BadText{"at_alone", "@\n", "1:2", "the source is missing; write a ClassBench rule as `@source"},
        BadText{"source", "@any 0.0.0.0/0 0 : 1 0 : 1 0/0\n", "1:2", "all addresses are 0.0.0.0/0"},
        BadText{"host_bits", "@10.0.0.1/8 0.0.0.0/0 0 : 1 0 : 1 0/0\n", "1:2", "write 10.0.0.0/8"},
        BadText{"destination_missing", "@10.0.0.0/8\n", "1:12", "the destination is missing"},
        BadText{"sport_missing", "@10.0.0.0/8 0.0.0.0/0\n", "1:22", "the source port is missing"},
        BadText{"sport_dash", "@10.0.0.0/8 0.0.0.0/0 0-1 0 : 1 0/0\n", "1:23",
                "no source port range; write `low : high`"},
        BadText{"sport_leading_zero", "@10.0.0.0/8 0.0.0.0/0 00 : 1 0 : 1 0/0\n", "1:23", "without leading zeros"},
        BadText{"protocol_leading_zero", "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 06/255\n", "1:35", "write 6/255 without"},
        BadText{"sport_open", "@10.0.0.0/8 0.0.0.0/0 0 : \n", "1:23", "no source port range"},
        BadText{"dport_65536", "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 65536 0/0\n", "1:29", "no destination port range"},
        BadText{"dport_reversed", "@10.0.0.0/8 0.0.0.0/0 0 : 1 2 : 1 0/0\n", "1:29", "the lower port first: 1 and 2"},
        BadText{"protocol_missing", "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1\n", "1:34", "the protocol is missing"},
        BadText{"protocol_name", "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 tcp\n", "1:35", "'tcp' is no protocol"},
        BadText{"protocol_no_mask", "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x06\n", "1:35", "write value/mask"},
        BadText{"protocol_100", "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x100/0xFF\n", "1:35", "is no protocol"},
        BadText{"mask_digits", "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x06/0xFG\n", "1:35", "is no protocol"},
        BadText{"bits_outside_mask", "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x06/0x00\n", "1:35", "write 0x00/0x00"},
        BadText{"flags", "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x06/0xFF SYN\n", "1:45", "'SYN' is no TCP flags column"},
        BadText{"flags_17_bits", "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x06/0xFF 0x10000/0\n", "1:45", "is no TCP flags"},
        BadText{"seventh_column", "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x06/0xFF 0/0 9\n", "1:49", "unexpected '9'"}),
    catena::testing::name_of_case);

TEST(RuleFile, ten_thousand_rules_are_read_and_one_more_is_an_error) {
  std::string text;
  for (std::size_t i = 0; i < kMaxRules; ++i) {
    text += "deny tcp any any any any\n";
  }
  const auto file = parse_rules(text, "fw.rules");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->rules.size(), kMaxRules);
  EXPECT_THAT(std::string(parse_rules(text + "# comment\n deny", "fw.rules").status().message()),
              StartsWith("fw.rules:10002:2: more than 10000 rules"));
}

TEST(RuleFile, a_file_that_is_not_there_is_not_found) {
  EXPECT_EQ(load_rules("/nonexistent/fw.rules", Action::kDeny).status().code(), absl::StatusCode::kNotFound);
}

TEST(RuleFile, any_cut_of_a_file_is_read_or_refused) {
  const std::string text =
      "deny tcp 10.0.0.0/8 any 1024-65535 443 # x\r\n\n@10.0.0.0/8 0.0.0.0/0 0 : 65535 1 : 2 0x06/0xFF 0x10/0x10\n";
  catena::testing::expect_any_cut_is_read_or_refused(text, parse);
}

class ShippedRules : public ::testing::TestWithParam<std::pair<std::string, std::size_t>> {};

TEST_P(ShippedRules, are_accepted) {
  const auto file = load_rules(source_path(GetParam().first), Action::kDeny);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->rules.size(), GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(Files, ShippedRules,
                         ::testing::Values(std::pair("examples/branch-office/fw.rules", 9U),
                                           std::pair("tests/data/chain/fw.rules", 6U)));

}  // namespace
}  // namespace catena::classify
