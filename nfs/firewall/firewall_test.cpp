// SPDX-License-Identifier: Apache-2.0
#include "firewall.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/testing/frames.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <random>

#include "firewall_testing.hpp"

namespace catena::firewall {
namespace {

using nf::testing::ends_after;
using nf::testing::Frame;
using nf::testing::make_frame;
using nf::testing::RunResult;
using nf::testing::with_fragment;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::rules_in;

class Firewall : public testing::FirewallTest {};

Frame udp(std::uint32_t src, std::uint32_t dst, std::uint16_t sport, std::uint16_t dport) {
  return make_frame(packet::kProtocolUdp, src, dst, sport, dport, "payload");
}
Frame tcp(std::uint32_t src, std::uint32_t dst, std::uint16_t sport, std::uint16_t dport) {
  return make_frame(packet::kProtocolTcp, src, dst, sport, dport, "payload");
}
/// A datagram of any protocol; its payload would read as ports 53 and 53.
Frame other(std::uint8_t protocol, std::uint32_t src, std::uint32_t dst) {
  Frame frame = make_frame(packet::kProtocolUdp, src, dst, 53, 53, "");
  frame[23] = protocol;
  return frame;
}

TEST_F(Firewall, the_first_rule_that_matches_decides) {
  write_rules(
      "allow udp 10.0.0.0/24 10.0.0.138/32 any 53\n"
      "deny  udp any any any 53\n"
      "deny  tcp 10.0.0.0/8 any 1024-65535 443\n"
      "allow tcp 10.0.0.0/8 any any 443\n"
      "deny  any 192.168.0.1 any any any\n");
  const RunResult result = run({
      udp(0x0A000005, 0x0A00008A, 4000, 53),
      udp(0x0A000005, 0x08080808, 4000, 53),
      tcp(0x0AFFFFFF, 0x08080808, 1024, 443),
      tcp(0x0AFFFFFF, 0x08080808, 1023, 443),
      tcp(0x0B000000, 0x08080808, 1024, 443),
      udp(0xC0A80001, 0x08080808, 1, 2),
      tcp(0x0AFFFFFF, 0x08080808, 1024, 444),
  });
  EXPECT_THAT(rules_in(result), ElementsAre(0, 1, 2, 3, -1, 4, -1));
  EXPECT_EQ(result.dropped("denied"), 3U);
  EXPECT_EQ(result.records[0], R"({"packet":0,"nf":"firewall","verdict":"pass","rule":0})");
  EXPECT_EQ(result.records[1], R"({"packet":1,"nf":"firewall","verdict":"drop","reason":"denied","rule":1})");
  EXPECT_EQ(result.records[4], R"({"packet":4,"nf":"firewall","verdict":"pass","rule":-1})");
}

TEST_F(Firewall, default_deny_drops_what_no_rule_matches) {
  write_rules("allow tcp 10.0.0.0/8 any any any\n");
  const RunResult result =
      run({tcp(0x0A000001, 1, 2, 3), tcp(0x0B000001, 1, 2, 3)}, "{rules: fw.rules, default: deny}");
  EXPECT_EQ(result.packets[0].verdict, packet::Verdict::kPass);
  EXPECT_EQ(result.packets[1].verdict, packet::Verdict::kDrop);
  EXPECT_EQ(result.records[1], R"({"packet":1,"nf":"firewall","verdict":"drop","reason":"denied","rule":-1})");
}

TEST_F(Firewall, classbench_lines_do_what_classbench_action_says) {
  write_rules("@10.0.0.0/8 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF 0x0000/0x0000\nallow tcp any any any 81\n");
  const std::vector<Frame> frames{tcp(0x0A000001, 1, 2, 80), tcp(0x0A000001, 1, 2, 81)};
  EXPECT_EQ(run(frames).dropped("denied"), 1U);
  EXPECT_EQ(run(frames, "{rules: fw.rules, default: deny, classbench_action: deny}").dropped("denied"), 1U);
  EXPECT_EQ(run(frames, "{rules: fw.rules, default: deny, classbench_action: allow}").dropped("denied"), 0U);
}

TEST_F(Firewall, packets_that_should_have_ports_and_show_none_are_decided_by_no_rule) {
  write_rules("deny any any any any 22\nallow any any any any any\n");
  const auto syn = [](std::size_t header_bytes) {  // to port 22, with options, whole
    Frame frame = ends_after(tcp(0x0A000001, 1, 4000, 22), header_bytes);
    frame[46] = static_cast<std::uint8_t>(header_bytes / 4 << 4);
    return frame;
  };
  const auto first_part = [](Frame frame, std::size_t bytes) {
    return with_fragment(ends_after(std::move(frame), bytes), 0x2000);
  };
  const Frame overwrites_flags = with_fragment(tcp(0x0A000001, 1, 4000, 80), 0x0001);
  const Frame later = with_fragment(tcp(0x0A000001, 1, 4000, 80), 0x0003);
  Frame header_longer_than_datagram = syn(40);
  header_longer_than_datagram[46] = 0xF0;
  Frame lying_length = udp(0x0A000001, 1, 4000, 22);
  packet::store_be16(lying_length.data() + 38, 4);
  const RunResult result =
      run({first_part(syn(56), 8), first_part(syn(56), 32), first_part(syn(56), 56), first_part(udp(1, 2, 3, 22), 4),
           overwrites_flags, later, header_longer_than_datagram, lying_length, syn(40)});
  EXPECT_EQ(result.dropped("fragment"), 4U);
  EXPECT_EQ(result.dropped("malformed"), 2U);
  EXPECT_EQ(result.dropped("denied"), 2U);
  EXPECT_EQ(result.records[0], R"({"packet":0,"nf":"firewall","verdict":"drop","reason":"fragment"})");
  EXPECT_EQ(result.records[1], R"({"packet":1,"nf":"firewall","verdict":"drop","reason":"fragment"})");
  EXPECT_EQ(result.records[2], R"({"packet":2,"nf":"firewall","verdict":"drop","reason":"denied","rule":0})");
  EXPECT_EQ(result.records[3], R"({"packet":3,"nf":"firewall","verdict":"drop","reason":"fragment"})");
  EXPECT_EQ(result.records[4], R"({"packet":4,"nf":"firewall","verdict":"drop","reason":"fragment"})");
  EXPECT_EQ(result.records[5], R"({"packet":5,"nf":"firewall","verdict":"pass","rule":1})");
  EXPECT_EQ(result.records[6], R"({"packet":6,"nf":"firewall","verdict":"drop","reason":"malformed"})");
  EXPECT_EQ(result.records[7], R"({"packet":7,"nf":"firewall","verdict":"drop","reason":"malformed"})");
  EXPECT_EQ(result.records[8], R"({"packet":8,"nf":"firewall","verdict":"drop","reason":"denied","rule":0})");
}

TEST_F(Firewall, frames_that_a_capture_holds_in_part_are_decided_by_the_headers_that_are_there) {
  write_rules("allow tcp any any any 80\n");
  const auto cut = [](Frame frame, std::size_t length) {
    frame.resize(length);
    return frame;
  };
  Frame with_options = tcp(1, 2, 3, 80);
  with_options.resize(14 + 20 + 40, 1);
  with_options[46] = 40 / 4 << 4;
  packet::store_be16(with_options.data() + 16, 1000);
  const RunResult result =
      run({cut(tcp(1, 2, 3, 80), 14 + 20 + 22), with_options, cut(tcp(1, 2, 3, 81), 14 + 20 + 22),
           cut(tcp(1, 2, 3, 80), 14 + 20 + 19), cut(with_options, 14 + 20 + 39), cut(tcp(1, 2, 3, 80), 14 + 19)},
          "{rules: fw.rules, default: deny}");
  EXPECT_EQ(result.packets[0].verdict, packet::Verdict::kPass);
  EXPECT_EQ(result.packets[1].verdict, packet::Verdict::kPass);
  EXPECT_EQ(result.dropped("denied"), 1U);
  EXPECT_EQ(result.dropped("malformed"), 2U) << "options belong to the header";
  EXPECT_EQ(result.dropped("unsupported"), 1U);
}

TEST_F(Firewall, packets_without_ports_match_only_rules_that_ask_for_none) {
  write_rules(
      "deny udp any any any 53\n"
      "deny udp any any 53 any\n"
      "deny any any any 53 53\n"
      "deny icmp 10.0.0.0/8 any any any\n"
      "allow udp 10.0.0.0/8 any any any\n"
      "allow any 11.0.0.0/8 any 0-65535 0-65535\n");
  const Frame first_part = with_fragment(udp(0x0A000001, 1, 53, 53), 0x2000);
  const Frame later_part = with_fragment(udp(0x0A000001, 1, 53, 53), 0x2001);
  const Frame last_part = with_fragment(udp(0x0B000001, 1, 53, 53), 0x0010);
  const RunResult result = run({first_part, later_part, last_part, other(1, 0x0A000001, 1), other(50, 0x0A000001, 1),
                                other(50, 0x0B000001, 1), other(132, 0x0A000001, 1)});
  EXPECT_THAT(rules_in(result), ElementsAre(0, 4, 5, 3, -1, 5, -1));
}

TEST_F(Firewall, a_rule_set_without_one_for_packets_without_ports_leaves_them_to_the_default) {
  write_rules("deny any any any any 53\n");
  const RunResult result = run({other(1, 1, 2), udp(1, 2, 3, 53)});
  EXPECT_THAT(rules_in(result), ElementsAre(-1, 0));
}

TEST_F(Firewall, every_protocol_number_and_mask_is_told_apart) {
  std::string text;
  for (int protocol = 0; protocol < 256; protocol += 3) {
    text += concat("deny ", protocol, " 10.0.0.0/8 any any any\n");
  }
  text += "@11.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x10/0x3F\n";
  text += "@11.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x01\n";
  write_rules(text);
  std::vector<Frame> frames;
  std::vector<int> expected;
  for (int protocol = 0; protocol < 256; ++protocol) {
    const auto of_protocol = [protocol](std::uint32_t src) {
      return protocol == packet::kProtocolTcp ? tcp(src, 1, 53, 53)
                                              : other(static_cast<std::uint8_t>(protocol), src, 1);
    };
    frames.push_back(of_protocol(0x0A000001));
    expected.push_back(protocol % 3 == 0 ? protocol / 3 : -1);
    frames.push_back(of_protocol(0x0B000001));
    expected.push_back((protocol & 0x3F) == 0x10 ? 86 : (protocol & 1) == 0 ? 87 : -1);
  }
  EXPECT_EQ(rules_in(run(frames)), expected);
}

TEST_F(Firewall, no_byte_of_any_packet_changes) {
  write_rules("deny tcp any any any 80\n");
  const std::vector<Frame> frames{tcp(1, 2, 3, 80), udp(1, 2, 3, 80), nf::testing::with_options(tcp(1, 2, 3, 80), 1),
                                  nf::testing::with_vlan(tcp(1, 2, 3, 80), 1)};
  const RunResult result = run(frames);
  EXPECT_THAT(rules_in(result), ElementsAre(0, -1, 0, 0));
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(result.packets[i].frame, frames[i]);
  }
}

TEST_F(Firewall, frames_that_are_not_ipv4_drop_unless_they_are_link_local) {
  write_rules("allow any any any any any\n");
  Frame ipv6(60, 0);
  ipv6[12] = 0x86;
  ipv6[13] = 0xDD;
  const RunResult result = run({ipv6, Frame(), Frame(13, 0xFF), udp(1, 2, 3, 4), nf::testing::make_arp_request(1, 2)});
  EXPECT_EQ(result.counters.unsupported, 3U);
  EXPECT_EQ(result.dropped("unsupported"), 3U);
  EXPECT_EQ(result.counters.link_local, 1U);
  EXPECT_EQ(result.records.size(), 4U);
  EXPECT_EQ(result.packets[3].verdict, packet::Verdict::kPass);
  EXPECT_EQ(result.packets[4].verdict, packet::Verdict::kPass);
}

TEST_F(Firewall, frames_cut_at_every_length_are_decided_alike_everywhere) {
  write_rules("deny tcp any any any 80\nallow tcp any any any any\ndeny any any any any any\n");
  std::vector<Frame> frames;
  for (Frame frame : {tcp(1, 2, 3, 80), udp(1, 2, 3, 80)}) {
    for (std::size_t length = 0; length <= frame.size(); ++length) {
      frames.emplace_back(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length));
      if (length >= 34) {  // and the datagram ends there by its own account
        frames.push_back(ends_after(frames.back(), length - 34));
      }
    }
  }
  const RunResult result = run(frames);
  EXPECT_EQ(result.counters.processed + result.counters.unsupported, frames.size());
  EXPECT_EQ(result.records.size(), frames.size());
}

TEST_F(Firewall, cutting_packets_into_other_batches_changes_nothing) {
  write_rules("deny udp 10.0.0.0/9 any any 0-32767\nallow any 10.128.0.0/9 any any any\n");
  std::vector<Frame> frames;
  auto random = [engine = std::mt19937(3)]() mutable { return static_cast<std::uint32_t>(engine()); };
  for (int i = 0; i < 600; ++i) {
    frames.push_back(udp(0x0A000000 | (random() & 0x01FFFFFF), random(), 1, static_cast<std::uint16_t>(random())));
    if (random() % 4 == 0) {
      frames.back() = with_fragment(std::move(frames.back()), 1);
    }
  }
  const RunResult expected = run(frames);
  nf::testing::expect_same_in_units_of(
      {1, 31, 32, 33, 63, 65, 255, 256, 257, 600}, expected, catena_nf_firewall(), [this] { return make(); }, frames);
}

TEST_F(Firewall, a_rule_number_that_no_rule_has_is_denied) {
  write_rules("allow any any any any any\n");
  auto nf = make("{rules: fw.rules, default: allow}");
  ASSERT_TRUE(nf.ok());
  const std::vector<Frame> frames(4, udp(1, 2, 3, 4));
  nf::testing::PacketStore store(frames);
  nf::Outcome outcome(3, false);
  const std::array<std::int32_t, 4> results{0, 1, -4, -1};
  (*nf)->complete({store.all(), {}, std::as_bytes(std::span(results)), outcome});
  EXPECT_EQ(outcome.drops()[0], 2U);
  EXPECT_EQ(store.all()[1].verdict(), packet::Verdict::kDrop);
  EXPECT_EQ(store.all()[2].verdict(), packet::Verdict::kDrop);
}

TEST_F(Firewall, hints_name_what_is_read_and_nothing_written) {
  write_rules("allow any any any any any\n");
  const nf::Hints hints = (*make())->hints();
  EXPECT_EQ(hints.gr, packet::fields(packet::kIpv4Src, packet::kIpv4Dst, packet::kIpv4Protocol, packet::kL4Sport,
                                     packet::kL4Dport, packet::kMetaLayers));
  EXPECT_EQ(hints.cr, hints.gr);
  EXPECT_EQ(hints.cw | hints.gw, packet::kNoFields);
}

TEST_F(Firewall, wrong_configuration_is_an_error_with_position) {
  write_rules("allow any any any any any\ndeny sctp any any any any\n");
  EXPECT_THAT(std::string(make().status().message()), HasSubstr("fw.rules:2:6: 'sctp' is no protocol"));
  EXPECT_THAT(std::string(make("{rules: nowhere.rules, default: allow}").status().message()),
              HasSubstr("nowhere.rules"));
  EXPECT_THAT(std::string(make("{default: allow}").status().message()), HasSubstr("rules"));
  EXPECT_THAT(std::string(make("{rules: fw.rules}").status().message()), HasSubstr("default"));
  EXPECT_THAT(std::string(make("{rules: fw.rules, default: drop}").status().message()),
              HasSubstr("allowed: allow, deny"));
  EXPECT_THAT(std::string(make("{rules: fw.rules, default: deny, rule: 1}").status().message()), HasSubstr("'rules'"));
}

TEST_F(Firewall, start_report_counts_rules_and_names_flags_that_are_ignored_once) {
  write_rules("allow any any any any 1\ndeny any any any any 2\ndeny any any any any 3\n");
  EXPECT_THAT((*make())->start_report(), ElementsAre("3 rules: 1 allow, 2 deny; default allow"));
  write_rules(
      "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF 0x1000/0x1000\n"
      "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF 0x0200/0x0200\n"
      "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF 0x0000/0x0000\n");
  EXPECT_THAT((*make())->start_report(),
              ElementsAre(HasSubstr("3 rules"), HasSubstr("TCP flags of 2 ClassBench rules")));
}

TEST_F(Firewall, replicas_share_the_rules_whatever_becomes_of_their_file) {
  write_rules("deny udp any any any 53\nallow tcp any any any any\n");
  const Result<std::unique_ptr<nf::Nf>> first = make();
  ASSERT_TRUE(first.ok()) << first.status();
  const std::vector<Frame> frames{udp(1, 2, 3, 53), tcp(1, 2, 3, 4), udp(1, 2, 3, 54), other(47, 1, 2)};
  write_rules("deny udp any any any 54\n");
  for (const char* file : {"replaced", "deleted"}) {
    const RunResult result = nf::testing::run_everywhere(
        catena_nf_firewall(), [&] { return (*first)->replicate(1); }, frames);
    EXPECT_THAT(rules_in(result), ElementsAre(0, 1, -1, -1)) << file;
    std::filesystem::remove(folder_.path("fw.rules"));
  }
  const Result<std::unique_ptr<nf::Nf>> replica = (*first)->replicate(2);
  ASSERT_TRUE(replica.ok()) << replica.status();
  const auto& whole = dynamic_cast<catena::firewall::Firewall&>(**first);
  EXPECT_TRUE(whole.shares_tables_with(dynamic_cast<catena::firewall::Firewall&>(**replica)));
  EXPECT_EQ((*first)->start_report(), (*replica)->start_report());
  EXPECT_EQ(catena_nf_firewall().sharding, nf::Sharding::kPacket);
}

TEST_F(Firewall, replicas_classify_beside_each_other) {
  write_rules("deny udp 10.0.0.0/9 any any 0-1023\nallow udp 10.0.0.0/8 any any any\n");
  const Result<std::unique_ptr<nf::Nf>> first = make("{rules: fw.rules, default: deny}");
  ASSERT_TRUE(first.ok()) << first.status();
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    frames.push_back(udp(0x0A000000 + i * 0x4321, 2, 3, static_cast<std::uint16_t>(i * 5)));
  }
  const auto run_replica = [&](std::uint32_t shard) {
    return nf::testing::run(catena_nf_firewall(), std::move((*first)->replicate(shard)).value(), frames);
  };
  const RunResult expected = run_replica(1).value();
  std::vector<std::future<Result<RunResult>>> replicas;
  for (std::uint32_t shard = 1; shard < 4; ++shard) {
    replicas.push_back(std::async(std::launch::async, run_replica, shard));
  }
  for (auto& replica : replicas) {
    EXPECT_EQ(replica.get().value().records, expected.records);
  }
}

}  // namespace
}  // namespace catena::firewall
