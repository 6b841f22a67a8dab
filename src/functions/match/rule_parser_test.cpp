// SPDX-License-Identifier: Apache-2.0
#include "functions/match/rule_parser.hpp"

#include "functions/match/test_random.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace catena::match {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RuleFile parse(std::string_view text) { return parse_rules(text, "x.rules", Variables()); }

/// The only rule of `text`, which has no other.
Rule only_rule(std::string_view text) {
  RuleFile file = parse(text);
  EXPECT_THAT(file.errors, IsEmpty()) << text;
  EXPECT_THAT(file.refused, IsEmpty()) << text;
  EXPECT_EQ(file.rules.size(), 1U) << text;
  return file.rules.empty() ? Rule{} : file.rules.front();
}
Content only_content(std::string const& options) {
  const Rule rule = only_rule("alert ip any any -> any any (" + options + " sid:1;)");
  EXPECT_EQ(rule.contents.size(), 1U) << options;
  return rule.contents.empty() ? Content{} : rule.contents.front();
}
/// The only error of a rule with these options.
std::string error_of(std::string const& options) {
  RuleFile file = parse("alert ip any any -> any any (" + options + ")");
  EXPECT_THAT(file.rules, IsEmpty()) << options;
  EXPECT_THAT(file.refused, IsEmpty()) << options;
  EXPECT_EQ(file.errors.size(), 1U) << options;
  return file.errors.empty() ? "" : file.errors.front();
}
/// What the only, well-formed rule is refused for.
std::string refusal_of(std::string_view text) {
  RuleFile file = parse(text);
  EXPECT_THAT(file.errors, IsEmpty()) << text;
  EXPECT_THAT(file.rules, IsEmpty()) << text;
  EXPECT_EQ(file.refused.size(), 1U) << text;
  return file.refused.empty() ? "" : file.refused.front().reason;
}

constexpr std::string_view kFullRule =
    "drop tcp [10.0.0.0/8,!10.1.0.0/16] 1024: <> $HOME_NET [80,443] (msg:\"a \\\"quoted\\\" text\\; more\"; "
    "flow:established; dsize:>1; content:!\"GET|20 2f|\\\\x\\:\"; nocase; offset:1; depth:20; content:\"Z\"; "
    "distance:-3; within:4; endswith; isdataat:!1,relative; flags:S,12; reference:url,example.org/a; "
    "classtype:misc-activity; sid:2000001; rev:3; priority:2; "
    "metadata:a b, c d;)";

TEST(RuleParser, every_part_of_a_rule_is_read) {
  const Rule rule = only_rule(kFullRule);
  EXPECT_EQ(rule.action, Action::kDrop);
  EXPECT_EQ(rule.protocol, Protocol::kTcp);
  EXPECT_TRUE(rule.both_directions);
  EXPECT_TRUE(rule.has_flow);
  EXPECT_EQ(rule.sid, 2000001U);
  EXPECT_EQ(rule.labels.message, "a \"quoted\" text; more");
  EXPECT_EQ(rule.labels.classtype, "misc-activity");
  EXPECT_EQ(rule.labels.generator, 1U);
  EXPECT_EQ(rule.labels.revision, 3U);
  EXPECT_EQ(rule.labels.priority, 2U);
  EXPECT_TRUE(rule.source->contains(0x0A000001));
  EXPECT_FALSE(rule.source->contains(0x0A010001));
  EXPECT_TRUE(rule.source_ports->contains(1024));
  EXPECT_FALSE(rule.source_ports->contains(1023));
  EXPECT_TRUE(rule.destination->is_all(kMaxAddress));
  EXPECT_TRUE(rule.destination_ports->contains(443));
  ASSERT_EQ(rule.contents.size(), 2U);
  EXPECT_EQ(rule.contents[0].bytes, "get /\\x:");
  EXPECT_TRUE(rule.contents[0].negated);
  EXPECT_TRUE(rule.contents[0].nocase);
  EXPECT_FALSE(rule.contents[0].relative);
  EXPECT_EQ(rule.contents[0].offset, 1);
  EXPECT_EQ(rule.contents[0].depth, 20);
  EXPECT_EQ(rule.contents[1].bytes, "Z");
  EXPECT_TRUE(rule.contents[1].relative);
  EXPECT_EQ(rule.contents[1].distance, -3);
  EXPECT_EQ(rule.contents[1].within, 4);
}

TEST(RuleParser, contents_hold_any_bytes) {
  EXPECT_EQ(only_content("content:\"|00 FF 0a|\";").bytes, std::string("\x00\xFF\n", 3));
  EXPECT_EQ(only_content("content:\"a|62|c|64 65|\";").bytes, "abcde");
  EXPECT_EQ(only_content("content:\"|6 1|\";").bytes, "a");
  EXPECT_EQ(only_content("content:\"\\\"\\;\\:\\\\\";").bytes, "\";:\\");
  EXPECT_EQ(only_content("content:\"\xC3\xA4:(\";").bytes, "\xC3\xA4:(");
  EXPECT_EQ(only_content("content: ! \"AbC\" ;").bytes, "AbC");
  EXPECT_EQ(only_content("content:\"A|42|c\"; nocase;").bytes, "abc");
}

TEST(RuleParser, lines_continue_and_comments_are_skipped) {
  const RuleFile file = parse(
      "# a comment\n\n  \t\nalert tcp any any -> \\\n  any any (content:\"x\"; \\\r\n\tsid:1;)\r\n"
      "#alert ip any any -> any any (sid:2;)\nalert ip any any -> any any (sid:3;)");
  EXPECT_THAT(file.errors, IsEmpty());
  ASSERT_EQ(file.rules.size(), 2U);
  EXPECT_EQ(file.rules[0].sid, 1U);
  EXPECT_EQ(file.rules[1].sid, 3U);
}

TEST(RuleParser, an_error_has_file_line_and_column) {
  EXPECT_THAT(parse("\nalert tcp any any => any any\n").errors, ElementsAre(HasSubstr("x.rules:2:29: expected '('")));
  EXPECT_THAT(parse("alert tcp any 80,81 -> any any (sid:1;)").errors, ElementsAre(HasSubstr("x.rules:1:17: ")));
  EXPECT_THAT(parse("alert tcp any any -> any any \\\n (sid:1; \\\n   rev:x;)").errors,
              ElementsAre(HasSubstr("x.rules:3:8: 'x' is no number")));
}

TEST(RuleParser, each_wrong_option_is_an_error) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "no sid"},
      {"msg:\"x\";", "no sid"},
      {"sid:0;", "no number from 1"},
      {"sid:4294967296;", "4294967295"},
      {"sid:-1;", "no number"},
      {"sid:1; sid:2;", "has sid already"},
      {"sid;", "sid needs a value"},
      {"sid:1; rev:;", "rev needs a value"},
      {"sid:1; priority:256;", "255"},
      {"sid:1; msg:x;", "double quotes"},
      {"sid:1; msg:\"a\"; msg:\"b\";", "has msg already"},
      {"sid:1; reference:url;", "TYPE,VALUE"},
      {"sid:1; flow:sideways;", "no flow option"},
      {"sid:1; nocase;", "needs a content"},
      {"sid:1; offset:1;", "needs a content"},
      {"sid:1; content:\"a\"; nocase; nocase;", "has nocase already"},
      {"sid:1; content:\"a\"; nocase:1;", "no value"},
      {"sid:1; content:\"a\"; depth:1; depth:2;", "has depth already"},
      {"sid:1; content:\"a\"; offset:1; within:2;", "contradict"},
      {"sid:1; content:\"a\"; distance:1; depth:2;", "contradict"},
      {"sid:1; content:\"abc\"; depth:2;", "no room"},
      {"sid:1; content:\"abc\"; distance:0; within:2;", "no room"},
      {"sid:1; content:\"a\"; offset:-1;", "from 0 to 65535"},
      {"sid:1; content:\"a\"; distance:65536;", "from -65535 to 65535"},
      {"sid:1; content:\"a\"; depth:ten;", "no number"},
      {"sid:1; content:\"\";", "1 to 2048 bytes"},
      {"sid:1; content:\"" + std::string(2049, 'a') + "\";", "1 to 2048 bytes"},
      {"sid:1; content:a;", "double quotes"},
      {"sid:1; content:!;", "double quotes"},
      {"sid:1; content:\"|4|\";", "two hex digits"},
      {"sid:1; content:\"|4g|\";", "no hex digit"},
      {"sid:1; content:\"|41\";", "'|' is missing"},
      {"sid:1; content:\"a\\x\";", "backslash"},
      {"sid:1; content:\"a;b\";", "semicolon"},
      {"sid:1; content:\"a\",nocase;", "options of their own"},
      {"sid:1; :1;", "no option name"},
      {"sid:1; ;", "no option name"},
      {"sid:1", "expected ';'"},
      {"sid:1; dsize:70000;", "no number up to 65535"},
      {"sid:1; dsize:<0;", "no number up to 65535 is '<0'"},
      {"sid:1; dsize:>65535;", "no number"},
      {"sid:1; dsize:5<>6;", "no range with a number inside"},
      {"sid:1; dsize:7<>5;", "no range"},
      {"sid:1; dsize:5<=9;", "no number"},
      {"sid:1; dsize:=!5;", "no number"},
      {"sid:1; dsize:;", "dsize needs a value"},
      {"sid:1; dsize:1; dsize:2;", "has dsize already"},
      {"sid:1; itype:256;", "no number up to 255"},
      {"sid:1; icode:echo;", "no number up to 255"},
      {"sid:1; flags:s;", "'s' has no place here"},
      {"sid:1; flags:+;", "no list of flags"},
      {"sid:1; flags:S,;", "no list of flags"},
      {"sid:1; flags:S,0;", "'0' has no place here"},
      {"sid:1; flags:S,12+;", "'+' has no place here"},
      {"sid:1; flags:+S+;", "'+' has no place here"},
      {"sid:1; flags:S,A,R;", "no list of flags"},
      {"sid:1; isdataat:65536;", "from 0 to 65535"},
      {"sid:1; isdataat:x,relative;", "no number"},
      {"sid:1; isdataat:1,rawbytes;", "isdataat takes"},
      {"sid:1; isdataat:1,relative,raw;", "isdataat takes"},
      {"sid:1; isdataat;", "isdataat needs a value"},
      {"sid:1; fast_pattern;", "needs a content"},
      {"sid:1; startswith;", "needs a content"},
      {"sid:1; endswith;", "needs a content"},
      {"sid:1; content:\"a\"; endswith:1;", "no value"},
      {"sid:1; content:\"abc\"; fast_pattern:1,3;", "more than the content has"},
      {"sid:1; content:\"abc\"; fast_pattern:1;", "fast_pattern takes"},
      {"sid:1; content:\"abc\"; fast_pattern; content:\"d\"; fast_pattern;", "has fast_pattern already"},
      {"sid:1; content:\"abc\"; offset:1; fast_pattern:only;", "contradict"},
      {"sid:1; content:!\"abc\"; fast_pattern:only;", "a negated content"},
      {"sid:1; content:\"abc\"; startswith; depth:5;", "contradict"},
      {"sid:1; content:\"abc\"; offset:0; startswith;", "contradict"},
      {"sid:1; content:\"abc\"; distance:0; startswith;", "contradict"},
      {"sid:1; content:\"abc\"; startswith; startswith;", "has startswith already"},
  };
  for (auto const& [options, message] : cases) {
    EXPECT_THAT(error_of(options), HasSubstr(message)) << options;
  }
}

TEST(RuleParser, a_wrong_header_is_an_error) {
  for (std::string_view header :
       {"alert ip any any -> any", "alert ip any any any any any", "alert ip any any <- any any",
        "alert ip any any -> any any any", "alert tcp any 70000 -> any any", "alert icmp any 80 -> any any", "alert",
        "", "alert tcp [10.0.0.1 any -> any any"}) {
    const RuleFile file = parse(std::string(header) + " (sid:1;)");
    EXPECT_THAT(file.rules, IsEmpty()) << header;
    EXPECT_EQ(file.errors.size(), 1U) << header;
  }
}

TEST(RuleParser, rules_outside_the_subset_are_refused_by_name) {
  const auto with = [](std::string const& option) {
    return "alert tcp any any -> any any (content:\"a\"; " + option + " sid:1;)";
  };
  for (std::string name : {"pcre:\"/a\\;b(/\";", "flowbits:set,x;", "http_uri;", "http.uri;", "byte_test:1,>,0,0;",
                           "threshold:type limit;", "noalert;", "rawbytes;"}) {
    EXPECT_EQ(refusal_of(with(name)), name.substr(0, name.find_first_of(":;"))) << name;
  }
  EXPECT_EQ(refusal_of(with("contnet:\"a\";")), "contnet (did you mean content?)");
  EXPECT_EQ(refusal_of("alret ip any any -> any any (sid:1;)"), "action alret (did you mean alert?)");
  EXPECT_EQ(refusal_of(with("flow:established,only_stream;")), "flow only_stream");
  EXPECT_EQ(refusal_of(with("offset:from_elsewhere; byte_extract:1,0,from_elsewhere;")), "byte_extract");
  EXPECT_EQ(refusal_of("pass ip any any -> any any (sid:1;)"), "action pass");
  EXPECT_EQ(refusal_of("alert http any any -> any any (sid:1;)"), "protocol http");
  EXPECT_EQ(refusal_of("alert tcp-stream any any -> any any (sid:1;)"), "protocol tcp-stream");
  EXPECT_EQ(refusal_of("alert tcp any any => any any (sid:1;)"), "direction =>");
  EXPECT_EQ(refusal_of("alert tcp [2001:db8::/32,fe80::1] any -> any any (sid:1;)"), "IPv6 address");
  EXPECT_EQ(refusal_of("accept:hook tcp:all any any <> any 443 (flow:not_established; sid:1021;)"),
            "action accept:hook");
}

TEST(RuleParser, a_rule_whose_addresses_or_ports_mean_nothing_is_refused_alone) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"$NOPE any -> any any", "undefined variable $NOPE"},
      {"any [80,$PORTS] -> any any", "undefined variable $PORTS"},
      {"!any any -> any any", "matches no address"},
      {"any any -> !$EXTERNAL_NET any", "matches no address"},
      {"any any -> [10.0.0.0/8,!10.0.0.0/8] any", "matches no address"},
      {"any !any -> any any", "matches no port"},
  };
  for (auto const& [header, reason] : cases) {
    const RuleFile file = parse("alert tcp any any -> any any (sid:1;)\nalert tcp " + header +
                                " (sid:2;)\nalert ip any any -> any any (sid:3;)");
    EXPECT_THAT(file.errors, IsEmpty()) << header;
    EXPECT_EQ(file.rules.size(), 2U) << header;
    ASSERT_EQ(file.refused.size(), 1U) << header;
    EXPECT_EQ(file.refused[0].reason, reason);
    EXPECT_EQ(file.refused[0].file, "x.rules");
    EXPECT_EQ(file.refused[0].line, 2U);
    EXPECT_GT(file.refused[0].column, 10U);
  }
}

TEST(RuleParser, a_drop_whose_direction_nothing_tells_is_refused) {
  const auto rule = [](std::string const& header, std::string const& flow) {
    return header + " (flow:" + flow + "; content:\"x\"; sid:1;)";
  };
  const std::vector<std::array<std::string, 3>> refused = {
      {"drop tcp any any -> any any", "to_client,established", "to_client"},
      {"drop tcp any any -> any any", "established, to_server", "to_server"},
      {"drop tcp any any -> any 80", "from_server", "from_server"},
      {"drop tcp any 1024: -> any any", "to_client", "to_client"},
      {"drop tcp any !80 -> any any", "to_client", "to_client"},
      {"drop tcp any 80 <> any any", "to_client", "to_client"},
      {"drop udp any 53 -> any any", "from_client", "from_client"},
      {"drop icmp any any -> any any", "to_server", "to_server"},
      {"drop tcp any any -> any 80", "to_server,not_established", "not_established"},
  };
  for (auto const& [header, flow, word] : refused) {
    EXPECT_EQ(refusal_of(rule(header, flow)), "drop with flow " + word) << header;
  }
  for (std::string const& text :
       {rule("drop tcp any 80 -> any any", "to_client,established"),
        rule("drop tcp any any -> any [25,80,8080]", "to_server"), rule("drop udp any 53 -> any any", "from_server"),
        rule("drop tcp any any -> any any", "established"), rule("drop tcp any any -> any any", "stateless"),
        rule("alert tcp any any -> any any", "to_client")}) {
    EXPECT_EQ(only_rule(text).sid, 1U) << text;
  }
}

TEST(RuleParser, conditions_are_read) {
  const auto only = [](std::string const& options) {
    return only_rule("alert ip any any -> any any (" + options + " sid:1;)");
  };
  // what is in the set of a number, and what is not
  struct Numbers {
    std::string text;
    std::vector<std::uint32_t> in;
    std::vector<std::uint32_t> out;
  };
  for (Numbers const& numbers : std::vector<Numbers>{{"8", {8}, {7, 9}},
                                                     {"=8", {8}, {7, 9}},
                                                     {"!8", {0, 7, 9, 255}, {8}},
                                                     {"!= 8", {0, 7, 9, 255}, {8}},
                                                     {"<8", {0, 7}, {8, 255}},
                                                     {"<=8", {0, 8}, {9}},
                                                     {"> 8", {9, 255}, {8}},
                                                     {">=8", {8, 255}, {7}},
                                                     {"5<>9", {6, 8}, {5, 9}},
                                                     {"5 - 9", {6, 8}, {5, 9}}}) {
    for (std::string name : {"itype", "icode", "dsize"}) {
      const Rule rule = only(name + ":" + numbers.text + ";");
      const SharedSet set = name == "itype"   ? rule.conditions.icmp_type
                            : name == "icode" ? rule.conditions.icmp_code
                                              : rule.conditions.payload_bytes;
      ASSERT_NE(set, nullptr) << name;
      for (std::uint32_t number : numbers.in) {
        EXPECT_TRUE(set->contains(number)) << name << ":" << numbers.text << " " << number;
      }
      for (std::uint32_t number : numbers.out) {
        EXPECT_FALSE(set->contains(number)) << name << ":" << numbers.text << " " << number;
      }
      EXPECT_FALSE(rule.needs_payload);
    }
  }
  EXPECT_TRUE(only("itype:>3; itype:<6;").conditions.icmp_type->contains(5));
  EXPECT_FALSE(only("itype:>3; itype:<6;").conditions.icmp_type->contains(6));
  const Rule flags = only("flags:S+,12; tcp.flags:!A;");
  ASSERT_EQ(flags.conditions.tcp_flags.size(), 2U);
  EXPECT_EQ(flags.conditions.tcp_flags[0].mode, TcpFlags::Mode::kAll);
  EXPECT_EQ(flags.conditions.tcp_flags[0].flags, 0x02);
  EXPECT_EQ(flags.conditions.tcp_flags[0].ignored, 0xC0);
  EXPECT_EQ(flags.conditions.tcp_flags[1].mode, TcpFlags::Mode::kNotAll);
}

TEST(RuleParser, places_of_contents_are_read) {
  EXPECT_EQ(only_content("content:\"abc\"; startswith;").depth, 3);
  EXPECT_TRUE(only_content("content:\"abc\"; nocase; endswith;").at_end);
  const Content content = only_content("content:\"abc\"; isdataat:!1,relative; isdataat:4,relative,rawbytes;");
  ASSERT_EQ(content.data_after.size(), 2U);
  EXPECT_TRUE(content.data_after[0].negated);
  EXPECT_EQ(content.data_after[1].bytes, 4);
  const Rule rule =
      only_rule("alert ip any any -> any any (content:\"long\"; content:\"ab\"; fast_pattern:0,1; sid:1;)");
  EXPECT_EQ(rule.search_content, 1U);
  EXPECT_FALSE(only_rule("alert ip any any -> any any (content:!\"a\"; fast_pattern; sid:1;)").search_content);
  EXPECT_TRUE(only_rule("alert ip any any -> any any (isdataat:!9; sid:1;)").needs_payload);
}

TEST(RuleParser, a_sid_is_taken_once) {
  const RuleFile file = parse(
      "alert ip any any -> any any (sid:7;)\nalert tcp any any -> any any (sid:7;)\nalert ip any any -> any any "
      "(sid:8;)");
  EXPECT_EQ(file.rules.size(), 2U);
  EXPECT_THAT(file.errors, ElementsAre(HasSubstr("x.rules:2:35: sid 7 is taken by the rule in line 1")));
}

TEST(RuleParser, a_rule_is_identified_by_gid_and_sid) {
  const RuleFile file = parse(
      "alert ip any any -> any any (sid:7;)\nalert ip any any -> any any (gid:3; sid:7;)\nalert ip any any -> any any "
      "(gid:1; sid:7;)\nalert ip any any -> any any (gid:3; sid:7;)\n");
  EXPECT_EQ(file.rules.size(), 2U);
  EXPECT_THAT(file.errors, ElementsAre(HasSubstr("x.rules:3:41: sid 7 is taken by the rule in line 1"),
                                       HasSubstr("x.rules:4:41: sid 7 of gid 3 is taken by the rule in line 2")));
}

TEST(RuleParser, a_newer_revision_replaces_an_older_one) {
  const auto rule = [](std::string const& rest) { return concat("alert ip any any -> any any (", rest, ")\n"); };
  const RuleFile file = parse(concat(rule("msg:\"a\"; sid:7; rev:1;"), rule("sid:8;"), rule("msg:\"b\"; sid:7; rev:3;"),
                                     rule("msg:\"c\"; sid:7; rev:2;"), rule("msg:\"d\"; sid:7; rev:3;"),
                                     rule("gid:2; sid:7; rev:1;"), rule("pcre:\"/x/\"; sid:7; rev:9;")));
  ASSERT_EQ(file.rules.size(), 3U);
  EXPECT_EQ(file.rules[0].labels.message, "b");
  EXPECT_EQ(file.rules[0].labels.revision, 3U);
  EXPECT_EQ(file.replaced, 1U);
  EXPECT_THAT(file.errors, ElementsAre(HasSubstr("x.rules:4:"), HasSubstr("taken by the rule in line 3")));
  EXPECT_EQ(file.refused.size(), 1U) << "the applied revision is not replaced by an unsupported one";
}

TEST(RuleParser, words_may_be_in_capitals) {
  const Rule rule = only_rule(
      "DROP Tcp ANY 80 -> any Any (MSG:\"A\"; Content:\"Ab\"; NOCASE; OffSet:1; FLOW:To_Client; Fast_Pattern; SID:1;)");
  EXPECT_EQ(rule.action, Action::kDrop);
  EXPECT_EQ(rule.protocol, Protocol::kTcp);
  EXPECT_TRUE(rule.source->is_all(kMaxAddress));
  EXPECT_EQ(rule.labels.message, "A");
  ASSERT_EQ(rule.contents.size(), 1U);
  EXPECT_EQ(rule.contents[0].bytes, "ab");
  EXPECT_EQ(rule.contents[0].offset, 1);
  EXPECT_EQ(rule.search_content, 0U);
  EXPECT_EQ(refusal_of("alert ip any any -> any any (PCRE:\"/x/\"; sid:1;)"), "PCRE");
  EXPECT_THAT(error_of("msg:\"a\"; MSG:\"b\"; sid:1;"), HasSubstr("has msg already"));
}

TEST(RuleParser, options_that_match_nothing_are_accepted) {
  const Rule plain = only_rule("alert ip any any -> any any (content:\"a\"; depth:3; sid:1;)");
  for (const char* option : {"target:src_ip;", "target:dest_ip;", "tag:session;", "tag:host,10,packets,src;",
                             "prefilter;", "reference:url,a.b/c;", "metadata:a b, c d;"}) {
    const Rule rule = only_rule(concat("alert ip any any -> any any (content:\"a\"; depth:3; ", option, " sid:1;)"));
    ASSERT_EQ(rule.contents.size(), 1U) << option;
    EXPECT_EQ(rule.contents[0].depth, plain.contents[0].depth) << option;
    EXPECT_EQ(rule.action, plain.action) << option;
  }
  EXPECT_THAT(error_of("target:nobody; sid:1;"), HasSubstr("'nobody' is no value of target; write src_ip or dest_ip"));
  EXPECT_THAT(error_of("tag:packet,1; sid:1;"), HasSubstr("write session or host"));
  EXPECT_THAT(error_of("target; sid:1;"), HasSubstr("target needs a value"));
}

TEST(RuleParser, broken_rules_are_refused_if_they_are_to_be_skipped) {
  const std::string text =
      "nonsense\nalert ip any any -> any any (content:\"a\"; sid:1;)\nalert ip any any -> any any (pcre:\"/x/\"; "
      "sid:2;)\nalert ip any any -> any any (sid:x;)\n";
  const RuleFile file = parse_rules(text, "x.rules", Variables(), OnError::kSkip);
  EXPECT_EQ(file.rules.size(), 1U);
  EXPECT_THAT(file.errors, IsEmpty());
  EXPECT_EQ(file.error_count, 2U);
  ASSERT_EQ(file.refused.size(), 3U);
  EXPECT_EQ(to_string(file.refused[0]), "x.rules:1:9: not applied: broken: expected '(' and the rule's options");
  EXPECT_EQ(to_string(file.refused[1]), "x.rules:3:30: not applied: pcre");
  EXPECT_THAT(to_string(file.refused[2]), HasSubstr("x.rules:4:34: not applied: broken: 'x' is no number"));
  EXPECT_EQ(nf::reasons_of(file.refused), "broken 2, pcre 1");
}

TEST(RuleParser, a_file_of_broken_rules_is_an_error_all_the_same) {
  std::string text;
  for (std::size_t i = 0; i < 2 * kMaxSkipped; ++i) {
    text += "x\n";
  }
  const RuleFile file = parse_rules(text, "x.rules", Variables(), OnError::kSkip);
  EXPECT_THAT(file.errors, ElementsAre(HasSubstr("x.rules: more than 65536 broken rules")));
  EXPECT_LE(file.refused.size(), kMaxSkipped + 1);
}

TEST(RuleParser, the_list_of_errors_is_bounded) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += "nonsense\n";
  }
  const RuleFile file = parse(text);
  EXPECT_EQ(file.errors.size(), kMaxErrors);
  EXPECT_EQ(file.error_count, 1000U);
}

TEST(RuleParser, no_truncation_of_a_rule_passes) {
  ASSERT_EQ(parse(kFullRule).rules.size(), 1U);
  for (std::size_t length = 1; length < kFullRule.size(); ++length) {
    const RuleFile file = parse(kFullRule.substr(0, length));
    EXPECT_THAT(file.rules, IsEmpty()) << kFullRule.substr(0, length);
    EXPECT_EQ(file.error_count + file.refused.size(), 1U) << kFullRule.substr(0, length);
  }
}

TEST(RuleParser, rules_with_bytes_changed_never_crash) {
  testing::Random random(5);
  constexpr std::string_view kInteresting("\"\\;:|!()[],$\n\r\0 ->a0", 20);
  for (int round = 0; round < 20000; ++round) {
    std::string text(kFullRule);
    for (std::uint32_t n = 1 + random.below(4); n > 0; --n) {
      const std::size_t at = random.below(static_cast<std::uint32_t>(text.size()));
      switch (random.below(3)) {
        case 0:
          text[at] = kInteresting[random.below(kInteresting.size())];
          break;
        case 1:
          text.erase(at, 1 + random.below(5));
          break;
        default:
          text.insert(at, 1, kInteresting[random.below(kInteresting.size())]);
      }
    }
    const RuleFile file = parse(text);
    EXPECT_LE(file.rules.size() + file.refused.size() + file.error_count, 5U);
  }
}

}  // namespace
}  // namespace catena::match
