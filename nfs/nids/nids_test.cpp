// SPDX-License-Identifier: Apache-2.0
#include "functions/match/test_random.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/headers.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "test_support.hpp"

namespace catena::nids {
namespace {

using namespace testing;
using nf::testing::Frame;
using nf::testing::make_frame;
using packet::kProtocolTcp;
using packet::kProtocolUdp;
using packet::Verdict;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Frame udp(std::string_view payload, std::uint16_t port = 53) {
  return make_frame(kProtocolUdp, 0x0A000001, 0x0A000002, 1000, port, payload);
}

TEST(Nids, a_rule_alerts_or_drops_and_says_which) {
  const ScratchFolder folder;
  folder.write("x.rules",
               "alert udp any any -> any 53 (content:\"abc\"; sid:20;)\nalert ip any any -> any any (content:\"b\"; "
               "sid:10;)\ndrop udp any any -> any any (content:\"bad\"; sid:30;)\n");
  const std::vector<Frame> frames = {udp("xabcx"), udp("nothing"), udp("abc bad"), udp("b", 54)};
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    const auto result = run_at(device, "rules: x.rules", folder.path(), frames);
    EXPECT_THAT(result.records,
                ElementsAre(R"({"packet":0,"nf":"nids","verdict":"alert","matches":[10,20]})",
                            R"({"packet":2,"nf":"nids","verdict":"drop","reason":"rule","matches":[10,20,30]})",
                            R"({"packet":3,"nf":"nids","verdict":"alert","matches":[10]})"));
    ASSERT_EQ(result.packets.size(), 4U);
    EXPECT_EQ(result.packets[0].verdict, Verdict::kAlert);
    EXPECT_EQ(result.packets[1].verdict, Verdict::kPass);
    EXPECT_EQ(result.packets[2].verdict, Verdict::kDrop);
    EXPECT_EQ(result.dropped("rule"), 1U);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      EXPECT_EQ(result.packets[i].frame, frames[i]);
    }
    EXPECT_EQ(result.counters.device_packets, device == nullptr ? 0U : 4U);
  }
}

TEST(Nids, a_string_list_counts_overlapping_occurrences) {
  const ScratchFolder folder;
  folder.write("x.txt", "aa\nzz\naaa\nAb\n");
  const std::vector<Frame> frames = {udp("aaaa"), udp("Ab ab zz"), udp("none")};
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    EXPECT_THAT(run_at(device, "strings: x.txt", folder.path(), frames).records,
                ElementsAre(R"({"packet":0,"nf":"nids","verdict":"alert","matches":[0,2],"occurrences":5})",
                            R"({"packet":1,"nf":"nids","verdict":"alert","matches":[1,3],"occurrences":2})"));
    const auto dropping = run_at(device, "{strings: x.txt, nocase: true, string_action: drop}", folder.path(), frames);
    EXPECT_THAT(
        dropping.records,
        ElementsAre(R"({"packet":0,"nf":"nids","verdict":"drop","reason":"rule","matches":[0,2],"occurrences":5})",
                    R"({"packet":1,"nf":"nids","verdict":"drop","reason":"rule","matches":[1,3],"occurrences":3})"));
    EXPECT_EQ(dropping.dropped("rule"), 2U);
  }
}

TEST(Nids, strings_of_a_list_without_case_may_be_the_same) {
  const ScratchFolder folder;
  folder.write("x.txt", "ab\nAB");
  for (device::Device* device : places()) {
    EXPECT_THAT(run_at(device, "{strings: x.txt, nocase: yes}", folder.path(), {udp("aB")}).records,
                ElementsAre(HasSubstr(R"("matches":[0,1],"occurrences":2)")));
  }
}

TEST(Nids, a_match_on_every_byte_of_both_automata_is_kept) {
  const ScratchFolder folder;
  folder.write("x.rules",
               "alert ip any any -> any any (content:\"a\"; content:\"a\"; offset:1399; depth:1; sid:1;)\n"
               "alert ip any any -> any any (content:\"AA\"; nocase; distance:1398; within:2; sid:2;)\n"
               "alert ip any any -> any any (content:!\"b\"; content:\"aaa\"; sid:3;)\n");
  const std::vector<Frame> frames = {udp(std::string(1400, 'a')), udp(std::string(1399, 'a')), udp("")};
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    EXPECT_EQ(hits_of(run_at(device, "rules: x.rules", folder.path(), frames)), (Hits{{1, {1, 2, 3}}, {2, {3}}}));
  }
}

TEST(Nids, rules_without_contents_match_by_header) {
  const ScratchFolder folder;
  folder.write("x.rules",
               "alert tcp any any -> any any (sid:1;)\nalert udp any any -> any 53 (content:!\"x\"; sid:2;)\n");
  const std::vector<Frame> frames = {make_frame(kProtocolTcp, 1, 2, 3, 4, ""), udp("y"), udp("x"), udp("")};
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    EXPECT_EQ(hits_of(run_at(device, "rules: x.rules", folder.path(), frames)), (Hits{{1, {1}}, {2, {2}}}));
  }
}

TEST(Nids, only_the_part_of_a_datagram_with_its_header_is_tcp_or_udp) {
  const ScratchFolder folder;
  folder.write("x.rules",
               "alert udp any any -> any any (content:\"abc\"; sid:1;)\nalert ip any any -> any any (content:\"abc\"; "
               "sid:2;)\n");
  const Frame first = nf::testing::with_fragment(udp("abc"), 0x2000);
  const Frame later = nf::testing::with_fragment(udp("abc"), 0x0001);
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    EXPECT_EQ(hits_of(run_at(device, "rules: x.rules", folder.path(), {udp("abc"), later}))[2],
              (std::set<std::uint32_t>{2}));
    const packet::Layers layers = packet::parse(first.data(), static_cast<std::uint32_t>(first.size()));
    const bool has_udp = (layers.flags & packet::kUdp) != 0;
    EXPECT_EQ(hits_of(run_at(device, "rules: x.rules", folder.path(), {first}))[1],
              has_udp ? (std::set<std::uint32_t>{1, 2}) : (std::set<std::uint32_t>{2}));
  }
}

TEST(Nids, ethernet_padding_is_no_payload) {
  const ScratchFolder folder;
  folder.write("x.txt", "pad");
  Frame frame = udp("");
  frame.insert(frame.end(), {'p', 'a', 'd'});
  for (device::Device* device : places()) {
    EXPECT_THAT(run_at(device, "strings: x.txt", folder.path(), {frame}).records, ElementsAre());
  }
}

TEST(Nids, empty_files_match_nothing) {
  const ScratchFolder folder;
  folder.write("empty", "");
  for (device::Device* device : places()) {
    EXPECT_THAT(run_at(device, "strings: empty", folder.path(), {udp("x")}).records, ElementsAre());
    EXPECT_THAT(run_at(device, "rules: empty", folder.path(), {udp("x")}).records, ElementsAre());
  }
}

constexpr std::string_view kPartlyRefused =
    "alert ip any any -> any any (flow:established; content:\"a\"; sid:1;)\nalert ip any any -> any any "
    "(pcre:\"/x/\"; sid:2;)\nalert ip $NOPE any -> any any (sid:3;)\nalert ip any any -> any any "
    "(pcre:\"/y/\"; sid:4;)\n";

TEST(Nids, start_report_counts_what_is_refused_and_not_evaluated) {
  const ScratchFolder folder;
  folder.write("x.rules", kPartlyRefused);
  auto nf = nf::testing::make_nf(catena_nf_nids(), "rules: x.rules", folder.path());
  ASSERT_TRUE(nf.ok()) << nf.status();
  const std::vector<std::string> report = (*nf)->start_report();
  ASSERT_EQ(report.size(), 3U);
  EXPECT_EQ(report[0], "1 rules loaded, 3 refused: pcre 2, undefined variable $NOPE 1");
  EXPECT_THAT(report[1], HasSubstr("x.rules:2:30: not applied: pcre"));
  EXPECT_THAT(report[2], HasSubstr("1 rules name flow"));
  auto const* refusing = dynamic_cast<nf::Refusing const*>(nf->get());
  ASSERT_NE(refusing, nullptr);
  const std::vector<nf::Refusal> refused = refusing->refusals();
  ASSERT_EQ(refused.size(), 3U);
  EXPECT_THAT(refused[1].file, HasSubstr("x.rules"));
  EXPECT_EQ(refused[1].line, 3U);
  EXPECT_EQ(refused[1].column, 10U);
  EXPECT_EQ(refused[1].reason, "undefined variable $NOPE");
}

TEST(Nids, refused_rules_are_an_error_where_the_chain_says_so_or_none_is_left) {
  const ScratchFolder folder;
  folder.write("some.rules", kPartlyRefused);
  folder.write("all.rules", "alert http any any -> any any (sid:1;)\n");
  std::string many;
  for (int sid = 1; sid <= 30; ++sid) {
    many += "alert ip any any -> any any (noalert; sid:" + std::to_string(sid) + ";)\n";
  }
  folder.write("many.rules", many);
  const auto status = [&](std::string const& yaml) {
    return nf::testing::make_nf(catena_nf_nids(), yaml, folder.path()).status();
  };
  EXPECT_TRUE(status("{rules: some.rules, on_refused: warn}").ok());
  const Status some = status("{rules: some.rules, on_refused: error}");
  EXPECT_EQ(some.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(some.message()), HasSubstr("3 rules are refused (pcre 2, undefined variable $NOPE 1)"));
  EXPECT_THAT(std::string(some.message()), HasSubstr("some.rules:4:30: not applied: pcre"));
  const Status all = status("rules: all.rules");
  EXPECT_EQ(all.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(all.message()), HasSubstr("every rule is refused (protocol http 1)"));
  EXPECT_THAT(std::string(status("{rules: many.rules, on_refused: error}").message()), HasSubstr("10 more refused"));
}

TEST(Nids, broken_rules_are_skipped_and_reported_where_the_chain_says_so) {
  const ScratchFolder folder;
  folder.write("x.rules",
               "not a rule\nalert ip any any -> any any (content:\"a\"; sid:1; rev:1;)\nalert ip any any -> any any "
               "(pcre:\"/x/\"; sid:2;)\nalert ip any any -> any any (content:\"a\"; sid:1; rev:1;)\nalert ip any any "
               "-> any any (content:\"b\"; sid:1; rev:2;)\n");
  const auto make = [&folder](std::string const& yaml) {
    return nf::testing::make_nf(catena_nf_nids(), yaml, folder.path());
  };
  const Status status = make("rules: x.rules").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("x.rules:1:11: expected '('"));
  auto nf = make("{rules: x.rules, on_error: skip}");
  ASSERT_TRUE(nf.ok()) << nf.status();
  const std::vector<std::string> report = (*nf)->start_report();
  ASSERT_EQ(report.size(), 5U);
  EXPECT_EQ(report[0], "1 rules loaded, 3 refused: broken 2, pcre 1");
  EXPECT_THAT(report[1], HasSubstr("x.rules:1:11: not applied: broken: expected '('"));
  EXPECT_EQ(report[2], "1 rules replaced by a newer revision");
  EXPECT_THAT(report[3], StartsWith(nf::kWarning));
  EXPECT_THAT(report[3], HasSubstr("x.rules:1:11: not applied: broken"));
  EXPECT_THAT(report[4], HasSubstr("x.rules:4:47: not applied: broken: sid 1 is taken by the rule in line 2"));
  auto const* refusing = dynamic_cast<nf::Refusing const*>(nf->get());
  ASSERT_NE(refusing, nullptr);
  EXPECT_EQ(refusing->applied_rules(), 1U);
  EXPECT_EQ(refusing->refusals().size(), 3U);
  for (device::Device* device : places()) {
    EXPECT_EQ(hits_of(run_at(device, "{rules: x.rules, on_error: skip}", folder.path(), {udp("a"), udp("b")})),
              (Hits{{2, {1}}}))
        << name_of(device);
  }

  const Status both = make("{rules: x.rules, on_error: skip, on_refused: error}").status();
  EXPECT_THAT(std::string(both.message()), HasSubstr("1 rules are refused (pcre 1), and the chain has on_refused"));
  folder.write("x.rules", "not a rule\n");
  for (const char* more : {"", ", on_refused: error"}) {
    const Status none = make(concat("{rules: x.rules, on_error: skip", more, "}")).status();
    EXPECT_THAT(std::string(none.message()), HasSubstr("every rule is refused (broken 1)"));
  }
}

TEST(Nids, no_more_than_twenty_broken_rules_are_warned_of_one_by_one) {
  const ScratchFolder folder;
  std::string text = "alert ip any any -> any any (sid:1;)\n";
  for (int i = 0; i < 30; ++i) {
    text += "x\n";
  }
  folder.write("x.rules", text);
  auto nf = nf::testing::make_nf(catena_nf_nids(), "{rules: x.rules, on_error: skip}", folder.path());
  ASSERT_TRUE(nf.ok()) << nf.status();
  const std::vector<std::string> report = (*nf)->start_report();
  EXPECT_EQ(report.size(), 2U + 20U + 1U);
  EXPECT_THAT(report.back(), HasSubstr("x.rules: 10 more broken rules"));
}

TEST(Nids, records_name_the_gids_of_rules_unless_all_are_the_usual_one) {
  const ScratchFolder folder;
  folder.write(
      "x.rules",
      "alert udp any any -> any any (content:\"x\"; gid:3; sid:1;)\nalert udp any any -> any any (content:\"x\"; "
      "sid:1;)\nalert udp any any -> any any (content:\"y\"; sid:2;)\n");
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    EXPECT_THAT(run_at(device, "rules: x.rules", folder.path(), {udp("xy"), udp("y")}).records,
                ElementsAre(R"({"packet":0,"nf":"nids","verdict":"alert","matches":[1,1,2],"gids":[1,3,1]})",
                            R"({"packet":1,"nf":"nids","verdict":"alert","matches":[2]})"));
  }
}

TEST(Nids, line_ends_of_other_systems_are_no_part_of_a_string) {
  const ScratchFolder folder;
  folder.write("x.txt",
               "\xef\xbb\xbf"
               "ab\r\ncd\r\n");
  for (device::Device* device : places()) {
    EXPECT_EQ(hits_of(run_at(device, "strings: x.txt", folder.path(), {udp("ab."), udp(".cd")})),
              (Hits{{1, {0}}, {2, {1}}}));
  }
}

TEST(Nids, the_variables_of_suricatas_own_file_are_defined) {
  const ScratchFolder folder;
  std::string text;
  int sid = 0;
  for (const char* name : {"HOME_NET", "EXTERNAL_NET", "HTTP_SERVERS", "SMTP_SERVERS", "SQL_SERVERS", "DNS_SERVERS",
                           "TELNET_SERVERS", "AIM_SERVERS", "DC_SERVERS", "DNP3_SERVER", "DNP3_CLIENT", "MODBUS_CLIENT",
                           "MODBUS_SERVER", "ENIP_CLIENT", "ENIP_SERVER"}) {
    text += concat("alert udp $", name, " any -> any any (sid:", ++sid, ";)\n");
  }
  for (const char* name : {"HTTP_PORTS", "SHELLCODE_PORTS", "ORACLE_PORTS", "SSH_PORTS", "DNP3_PORTS", "MODBUS_PORTS",
                           "FILE_DATA_PORTS", "FTP_PORTS", "GENEVE_PORTS", "VXLAN_PORTS", "TEREDO_PORTS"}) {
    text += concat("alert udp any any -> any $", name, " (sid:", ++sid, ";)\n");
  }
  folder.write("x.rules", text);
  EXPECT_EQ(nf::testing::make_nf(catena_nf_nids(), "{rules: x.rules, on_refused: error}", folder.path()).status(),
            absl::OkStatus());
}

TEST(Nids, packets_that_it_cannot_look_at_pass_and_are_counted) {
  const ScratchFolder folder;
  folder.write("x.rules", "drop ip any any -> any any (sid:1;)\n");
  Frame arp(60, 0);
  packet::store_be16(arp.data() + 12, 0x0806);
  Frame ipv6(74, 0);
  packet::store_be16(ipv6.data() + 12, 0x86DD);
  Frame lying = udp("abc");
  packet::store_be16(lying.data() + packet::kEthernetBytes + 2, 1500);  // a total length beyond the frame
  Frame no_header = udp("abc");
  no_header.resize(packet::kEthernetBytes + 10);
  const std::vector<Frame> frames = {arp, ipv6, lying, no_header, Frame(5, 0), udp("abc")};
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    const auto result = run_at(device, "rules: x.rules", folder.path(), frames);
    ASSERT_EQ(result.packets.size(), frames.size());
    for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
      EXPECT_EQ(result.packets[i].verdict, packet::Verdict::kPass) << i;
      EXPECT_EQ(result.packets[i].frame, frames[i]) << i;
    }
    EXPECT_EQ(result.packets.back().verdict, packet::Verdict::kDrop);
    EXPECT_EQ(result.counters.unsupported, frames.size() - 1);
    EXPECT_EQ(result.counters.processed, 1U);
  }
}

TEST(Nids, only_rules_that_look_at_flags_or_icmp_name_these_fields) {
  const ScratchFolder folder;
  folder.write("plain.rules", "alert ip any any -> any any (content:\"a\"; dsize:1; sid:1;)\n");
  folder.write("fields.rules",
               "alert ip any any -> any any (flags:S; sid:1;)\nalert icmp any any -> any any (icode:1; sid:2;)\n");
  const auto hints = [&](std::string const& file) {
    auto nf = nf::testing::make_nf(catena_nf_nids(), "rules: " + file, folder.path());
    return nf.ok() ? (*nf)->hints() : nf::Hints{};
  };
  const packet::FieldSet fields = packet::fields(packet::kTcpFlags, packet::kIcmpHeader);
  EXPECT_EQ(hints("plain.rules").complete_reads & fields, packet::kNoFields);
  EXPECT_EQ(hints("fields.rules").complete_reads & fields, fields);
  EXPECT_EQ(hints("fields.rules").cr & fields, fields);
}

TEST(Nids, each_wrong_configuration_is_an_error_with_its_position) {
  const ScratchFolder folder;
  folder.write("ok.rules", "alert ip any any -> any any (sid:1;)");
  folder.write("bad.rules", "alert ip any any -> any any (sid:1;)\nalert ip any any -> any any (sid:1;)");
  folder.write("ok.txt", "a\n");
  folder.write("bad.config", "config\n");
  folder.write("gap.txt", "a\n\nb");
  folder.write("cr.txt", "a\r\r\n");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{}", "missing key 'rules'"},
      {"{rules: ok.rules, strings: ok.txt}", "exclude each other"},
      {"rules: none.rules", "none.rules"},
      {"{strings: ok.txt, on_refused: warn}", "'on_refused' goes with 'rules'"},
      {"{strings: ok.txt, classification: bad.config}", "'classification' goes with 'rules'"},
      {"{rules: ok.rules, classification: bad.config}", "bad.config:1:1: expected config classification"},
      {"{rules: ok.rules, on_refused: stop}", "allowed: warn, error"},
      {"{rules: ok.rules, nocase: true}", "test.yaml:1:27: 'nocase' goes with 'strings'"},
      {"{rules: ok.rules, string_action: drop}", "'string_action' goes with 'strings'"},
      {"{strings: ok.txt, variables: {A: any}}", "'variables' goes with 'rules'"},
      {"{strings: ok.txt, string_action: reject}", "allowed: alert, drop"},
      {"{strings: ok.txt, nocas: true}", "unknown key 'nocas'"},
      {"{rules: ok.rules, variables: {HOME_NET: nowhere}}", "test.yaml:1:41: variable HOME_NET"},
      {"{rules: ok.rules, variables: {HOME_NET: 'fe80::/10'}}", "test.yaml:1:41: variable HOME_NET"},
      {"rules: bad.rules", "bad.rules:2:34: sid 1 is taken"},
      {"strings: gap.txt", "gap.txt:2:1: an empty line"},
      {"{strings: ok.txt, on_error: skip}", "'on_error' goes with 'rules'"},
      {"{rules: ok.rules, on_error: stop}", "allowed: error, skip"},
      {"strings: cr.txt", "cr.txt:1:3: the line ends in a carriage return"},
  };
  for (auto const& [yaml, message] : cases) {
    const auto nf = nf::testing::make_nf(catena_nf_nids(), yaml, folder.path());
    EXPECT_EQ(nf.status().code(), absl::StatusCode::kInvalidArgument) << yaml;
    EXPECT_THAT(std::string(nf.status().message()), HasSubstr(message)) << yaml;
  }
}

TEST(Nids, variables_may_be_text_or_lists) {
  const ScratchFolder folder;
  folder.write("x.rules", "alert ip $HOME_NET any -> $EXTERNAL_NET any (content:\"a\"; sid:1;)");
  const std::vector<Frame> frames = {udp("a")};
  for (auto const& [variables, alerts] :
       std::vector<std::pair<std::string, std::size_t>>{{"{HOME_NET: 10.0.0.0/8}", 1},
                                                        {"{HOME_NET: [192.168.0.0/16, 10.0.0.1]}", 1},
                                                        {"{HOME_NET: 10.0.0.0/8, EXTERNAL_NET: '!$HOME_NET'}", 0}}) {
    const auto result = run_at(nullptr, "{rules: x.rules, variables: " + variables + "}", folder.path(), frames);
    EXPECT_EQ(result.records.size(), alerts) << variables;
  }
}

TEST(Nids, more_contents_than_a_kernel_takes_are_an_error_of_the_device_side) {
  const ScratchFolder folder;
  std::string list;
  for (int i = 0; i < 65536; ++i) {
    list += std::to_string(i) + "\n";
  }
  folder.write("x.txt", list);
  auto nf = nf::testing::make_nf(catena_nf_nids(), "strings: x.txt", folder.path());
  ASSERT_TRUE(nf.ok()) << nf.status();
  const auto side = (*nf)->kernel_side();
  EXPECT_EQ(side.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(side.status().message()), HasSubstr("x.txt: 65536 different"));
}

/// Spill rows of which nothing came back.
class NoSpill final : public nf::SpillRows {
 public:
  std::span<const std::byte> row(std::uint32_t /*row*/) const override { return {}; }
};

/// complete() must decide by the packet all the same.
TEST(Nids, results_that_no_kernel_wrote_are_not_believed) {
  const ScratchFolder folder;
  folder.write("x.txt", "abc");
  const auto nids = nf::testing::make_nf(catena_nf_nids(), "strings: x.txt", folder.path());
  ASSERT_TRUE(nids.ok()) << nids.status();
  EXPECT_TRUE(packet::contains((*nids)->hints().complete_reads, packet::kPayload)) << "it decides by the payload then";
  nf::testing::PacketStore store(std::vector<Frame>{udp("abc")});
  const NoSpill spill;
  for (match::MatchResult const& result :
       {match::MatchResult{1, {match::match_entry(7, 3)}}, match::MatchResult{1, {match::match_entry(0, 4)}},
        match::MatchResult{8, {}}, match::MatchResult{0xFFFFFFFE, {}}, match::MatchResult{match::kDecidedByCpu, {}}}) {
    nf::Outcome outcome(1, true);
    (*nids)->complete({store.all(), {}, std::as_bytes(std::span(&result, 1)), outcome, &spill});
    ASSERT_EQ(outcome.lines().size(), 1U);
    EXPECT_EQ(outcome.lines()[0].fields, "\"matches\":[0],\"occurrences\":1");
  }
}

/// Rules and strings, and frames that some match.
struct Lookout {
  const char* yaml;
  const char* file;
  const char* text;
  const char* other_text;
};
constexpr Lookout kLookouts[] = {
    {"rules: x.rules", "x.rules",
     "alert udp any any -> any 53 (content:\"abc\"; content:\"d\"; distance:1; sid:20;)\n"
     "drop udp any any -> any any (content:\"a string of more than thirty-two bytes\"; sid:30;)\n",
     "alert udp any any -> any any (content:\"nothing\"; sid:99;)\n"},
    {"strings: x.txt", "x.txt", "abc\na string of more than thirty-two bytes\n", "nothing\n"},
};
std::vector<Frame> watched_frames() {
  return {udp("abc"), udp("abcxd"), udp("nothing"), udp("a string of more than thirty-two bytes, abc d", 54), udp("")};
}

TEST(Nids, replicas_share_what_they_look_for_whatever_becomes_of_its_file) {
  for (Lookout const& lookout : kLookouts) {
    const ScratchFolder folder;
    folder.write(lookout.file, lookout.text);
    const auto expected = run_at(nullptr, lookout.yaml, folder.path(), watched_frames());
    EXPECT_GE(expected.records.size(), 2U);
    const auto first = nf::testing::make_nf(catena_nf_nids(), lookout.yaml, folder.path());
    ASSERT_TRUE(first.ok()) << first.status();
    folder.write(lookout.file, lookout.other_text);
    for (device::Device* device : places()) {
      auto replica = (*first)->replicate(1);
      ASSERT_TRUE(replica.ok()) << replica.status();
      auto const& whole = dynamic_cast<Nids const&>(**first);
      EXPECT_TRUE(whole.shares_tables_with(dynamic_cast<Nids const&>(**replica)));
      const auto result = nf::testing::run(catena_nf_nids(), std::move(*replica), watched_frames(), device);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->records, expected.records) << name_of(device);
      std::filesystem::remove(folder.path(lookout.file));
    }
  }
}

TEST(Nids, replicas_search_beside_each_other) {
  for (Lookout const& lookout : kLookouts) {
    const ScratchFolder folder;
    folder.write(lookout.file, lookout.text);
    const auto first = nf::testing::make_nf(catena_nf_nids(), lookout.yaml, folder.path());
    ASSERT_TRUE(first.ok()) << first.status();
    std::vector<Frame> frames;
    for (std::uint32_t i = 0; i < 200; ++i) {
      const std::vector<Frame> more = watched_frames();
      frames.insert(frames.end(), more.begin(), more.end());
    }
    const auto run_replica = [&](std::uint32_t shard) {
      return nf::testing::run(catena_nf_nids(), std::move((*first)->replicate(shard)).value(), frames);
    };
    const auto expected = run_replica(1).value();
    std::vector<std::future<Result<nf::testing::RunResult>>> replicas;
    for (std::uint32_t shard = 1; shard < 4; ++shard) {
      replicas.push_back(std::async(std::launch::async, run_replica, shard));
    }
    for (auto& replica : replicas) {
      EXPECT_EQ(replica.get().value().records, expected.records);
    }
  }
}

}  // namespace
}  // namespace catena::nids
