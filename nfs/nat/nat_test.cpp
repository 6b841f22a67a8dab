// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <map>
#include <random>
#include <set>

#include "nat_testing.hpp"

namespace catena::nat::testing {
namespace {

using namespace nf::testing;
using packet::load_be16;
using packet::store_be16;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kOtherHost = 0x0A000009;

TEST(Nat, an_outbound_datagram_gets_the_external_address_and_keeps_its_port) {
  const Frame out = udp(kHost, 1234, kServer, 53);
  const RunResult result = run_everywhere({out});
  EXPECT_EQ(result.packets[0].frame, with_ends(out, kExternal, 1234, kServer, 53));
  EXPECT_THAT(
      result.records,
      ElementsAre(R"({"packet":0,"nf":"nat","verdict":"pass","from":"10.0.0.5:1234","to":"203.0.113.1:1234"})"));
}

TEST(Nat, the_answer_goes_to_the_internal_endpoint) {
  const Frame out = udp(kHost, 1234, kServer, 53);
  const RunResult result = run_everywhere({out, udp(kServer, 53, kExternal, 1234, "answer")});
  EXPECT_EQ(result.packets[1].frame, udp(kServer, 53, kHost, 1234, "answer"));
  EXPECT_EQ(result.records[1],
            R"({"packet":1,"nf":"nat","verdict":"pass","from":"203.0.113.1:1234","to":"10.0.0.5:1234"})");
}

TEST(Nat, anybody_may_answer_to_a_mapping) {
  const Frame stranger = udp(0x08080808, 999, kExternal, 1234);
  const RunResult result = run_everywhere({udp(kHost, 1234, kServer, 53), stranger});
  EXPECT_EQ(result.packets[1].frame, with_ends(stranger, 0x08080808, 999, kHost, 1234));
}

TEST(Nat, a_taken_port_is_replaced_by_the_next_one_of_the_same_parity) {
  const RunResult result = run_everywhere({udp(kHost, 1234, kServer, 53), udp(kOtherHost, 1234, kServer, 53),
                                           udp(kHost, 4001, kServer, 53), udp(kOtherHost, 4001, kServer, 53)});
  EXPECT_EQ(source_port_of(result.packets[1].frame), 1236);
  EXPECT_EQ(source_port_of(result.packets[3].frame), 4003);
}

TEST(Nat, tcp_and_udp_and_echoes_have_ports_of_their_own) {
  const RunResult result =
      run_everywhere({udp(kHost, 1234, kServer, 53), make_segment(kOtherHost, kServer, 1234, 80, kSyn),
                      echo_request(kOtherHost, kServer, 1234)});
  EXPECT_EQ(source_port_of(result.packets[1].frame), 1234);
  EXPECT_EQ(load_be16(&result.packets[2].frame[kL4 + 4]), 1234);
}

TEST(Nat, an_echo_identifier_is_translated_there_and_back) {
  const Frame request = echo_request(kHost, kServer, 7, 3);
  const Frame other = echo_request(kOtherHost, kServer, 7, 5);
  const RunResult result =
      run_everywhere({request, other, echo_reply(kServer, kExternal, 7, 3), echo_reply(kServer, kExternal, 9, 5)});
  EXPECT_EQ(result.packets[0].frame, echo_request(kExternal, kServer, 7, 3));
  EXPECT_EQ(result.packets[1].frame, echo_request(kExternal, kServer, 9, 5));
  EXPECT_EQ(result.packets[2].frame, echo_reply(kServer, kHost, 7, 3));
  EXPECT_EQ(result.packets[3].frame, echo_reply(kServer, kOtherHost, 7, 5));
  EXPECT_EQ(result.records[3], R"({"packet":3,"nf":"nat","verdict":"pass","from":"203.0.113.1:9","to":"10.0.0.9:7"})");
}

TEST(Nat, echo_requests_to_an_external_address_are_answered) {
  const Frame from_outside = echo_request(kServer, kExternal, 7, 3);
  const RunResult result =
      run_everywhere({echo_request(kHost, kServer, 7), from_outside, echo_request(kHost, kExternal, 7)});
  EXPECT_EQ(result.packets[1].frame, echo_answer(from_outside));
  EXPECT_EQ(result.packets[1].verdict, packet::Verdict::kReply);
  EXPECT_EQ(result.packets[2].frame, echo_answer(echo_request(kHost, kExternal, 7))) << "of an inside host, too";
  EXPECT_EQ(result.records[1], R"({"packet":1,"nf":"nat","verdict":"reply","reply":"echo"})");
  EXPECT_EQ(statistic(result, "echo_replies"), 2U);
  EXPECT_EQ(statistic(result, "mappings"), 1U);
}

TEST(Nat, echo_requests_above_their_rate_and_parts_of_them_are_dropped) {
  const std::string yaml = concat(kOneAddress, "echo_rate: 2\n");
  const Frame request = echo_request(kServer, kExternal, 7);
  std::vector<std::uint8_t> body(100, 'z');
  const Frame first = in_two(make_icmp(8, 0, kServer, kExternal, 7 << 16, body), 5, 64).first;
  const RunResult result =
      run_everywhere({request, request, request, first, request, make_icmp(8, 1, kServer, kExternal, 7 << 16, body)},
                     yaml, {kSecond, kSecond, kSecond, kSecond, kSecond * 3 / 2, kSecond * 2});
  EXPECT_EQ(statistic(result, "echo_replies"), 3U);
  EXPECT_EQ(statistic(result, "echo_replies_over_rate"), 1U);
  EXPECT_EQ(result.dropped("no_mapping"), 3U);
  EXPECT_EQ(result.packets[2].frame, request);
  EXPECT_EQ(run_everywhere({request}, concat(kOneAddress, "echo_rate: 0\n")).dropped("no_mapping"), 1U);
}

TEST(Nat, one_stamp_far_ahead_stops_no_echo_replies) {
  std::vector<Frame> frames(packet::PacketClock::kStepPackets + 4, echo_request(kServer, kExternal, 7));
  std::vector<std::uint64_t> times{500'000'000 * kSecond};
  for (std::size_t i = 1; i < frames.size(); ++i) {
    times.push_back((1000 + i) * kSecond);
  }
  const RunResult result = run_everywhere(frames, concat(kOneAddress, "echo_rate: 1\n"), times);
  EXPECT_GE(statistic(result, "echo_replies"), 2U);
}

TEST(Nat, echo_replies_of_hosts_have_no_mapping) {
  const RunResult result = run_everywhere({echo_request(kHost, kServer, 7), echo_reply(kHost, kServer, 7),
                                           echo_reply(kHost, kExternal, 7), echo_reply(kServer, kExternal, 8)});
  EXPECT_TRUE(passed(result, 0));
  EXPECT_EQ(result.dropped("no_mapping"), 3U);
}

TEST(Nat, packets_between_others_and_inside_pass_untouched_and_unrecorded) {
  const std::vector<Frame> frames{udp(kHost, 1, kOtherHost, 2), udp(kServer, 1, 0x08080808, 2),
                                  make_frame(50, kHost, kOtherHost, 0, 0, "esp"), udp(kServer, 1, kExternal + 1, 2)};
  const RunResult result = run_everywhere(frames);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(result.packets[i].frame, frames[i]);
    EXPECT_TRUE(passed(result, i));
  }
  EXPECT_TRUE(result.records.empty());
  EXPECT_EQ(statistic(result, "mappings_created"), 0U);
}

TEST(Nat, multicast_and_broadcast_pass_untouched) {
  const std::vector<Frame> frames{udp(kHost, 5353, 0xE00000FB, 5353),
                                  udp(kHost, 1900, 0xEFFFFFFA, 1900),
                                  udp(kHost, 1, 0xE0000000, 2),
                                  udp(kHost, 1, 0xEFFFFFFF, 2),
                                  udp(0, 68, 0xFFFFFFFF, 67),
                                  udp(kHost, 68, 0xFFFFFFFF, 67),
                                  make_frame(2, kHost, 0xE0000016, 0, 0, "igmp"),
                                  udp(kServer, 1, 0xE0000001, 2)};
  const RunResult result = run_everywhere(frames);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(result.packets[i].frame, frames[i]) << i;
    EXPECT_TRUE(passed(result, i)) << i;
  }
  EXPECT_TRUE(result.records.empty());
  EXPECT_EQ(statistic(result, "mappings_created"), 0U);
  const RunResult next = run_everywhere({udp(kHost, 1, 0xDFFFFFFF, 2), udp(kHost, 1, 0xF0000000, 2)});
  EXPECT_EQ(source_of(next.packets[0].frame), kExternal) << "the addresses beside them";
  EXPECT_EQ(source_of(next.packets[1].frame), kExternal);
}

TEST(Nat, what_comes_from_outside_to_an_inside_address_is_dropped_unless_told_otherwise) {
  const std::vector<Frame> frames{udp(kServer, 1, kHost, 2), make_segment(kServer, kHost, 1, 2, kSyn),
                                  echo_request(kServer, kHost, 1), make_frame(50, kServer, kHost, 0, 0, "esp"),
                                  udp(kExternal, 1, kHost, 2)};
  const RunResult dropped = run_everywhere(frames);
  EXPECT_EQ(dropped.dropped("inbound_to_inside"), frames.size());
  EXPECT_EQ(dropped.records[0], R"({"packet":0,"nf":"nat","verdict":"drop","reason":"inbound_to_inside"})");
  const RunResult let_pass = run_everywhere(frames, concat(kOneAddress, "inbound_to_inside: pass\n"));
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_TRUE(passed(let_pass, i)) << i;
    EXPECT_EQ(let_pass.packets[i].frame, frames[i]) << i;
  }
  EXPECT_TRUE(let_pass.records.empty());
}

TEST(Nat, an_inside_source_on_a_port_that_is_not_inside_is_dropped_and_makes_no_mapping) {
  auto nat = make(concat(kOneAddress, "inside_ports: [0, 2]\n"));
  ASSERT_TRUE(nat.ok()) << nat.status();
  nf::Nf& nf = **nat;
  nf::testing::CpuNf instance(catena_nf_nat(), std::move(nat).value());
  const auto send = [&instance](Frame const& frame, std::uint16_t port) {
    nf::testing::PacketStore store(std::span(&frame, 1));
    store.all().meta().ingress[0] = port;
    instance.process(store.all());
    return store.all()[0].verdict() != packet::Verdict::kDrop;
  };
  EXPECT_FALSE(send(udp(kHost, 2000, kServer, 53), 1));
  EXPECT_FALSE(send(echo_request(kHost, kServer, 7), 64));
  EXPECT_FALSE(send(udp(kHost, 2000, kExternal, 53), 1)) << "hairpin";
  EXPECT_FALSE(send(udp(kHost, 2000, kOtherHost, 53), 1)) << "to inside";
  EXPECT_EQ(nf.statistics()[0].value, 0U);
  EXPECT_EQ(instance.dropped("spoofed_source"), 4U);
  EXPECT_TRUE(send(udp(kHost, 2000, kServer, 53), 0));
  EXPECT_TRUE(send(udp(kOtherHost, 2000, kServer, 53), 2));
  EXPECT_TRUE(send(udp(kServer, 53, kExternal, 2000), 1)) << "answers come from outside";
  EXPECT_EQ(nf.statistics()[0].value, 2U);
}

TEST(Nat, a_packet_to_an_external_endpoint_that_nobody_has_is_dropped_unchanged) {
  const Frame in = udp(kServer, 53, kExternal, 1234);
  const RunResult result = run_everywhere({in, udp(kHost, 9, kExternal, 1234)});
  EXPECT_EQ(result.packets[0].frame, in);
  EXPECT_EQ(result.dropped("no_mapping"), 2U);
  EXPECT_EQ(result.records[0], R"({"packet":0,"nf":"nat","verdict":"drop","reason":"no_mapping"})");
  EXPECT_EQ(statistic(result, "mappings_created"), 0U) << "a hairpin that reaches nobody makes no mapping";
}

TEST(Nat, hairpinned_packets_come_from_the_external_endpoint_of_the_sender) {
  const RunResult result =
      run_everywhere({udp(kHost, 1111, kServer, 53), udp(kOtherHost, 2222, kExternal, 1111, "to the neighbour"),
                      udp(kHost, 1111, kExternal, 2222, "and back"), udp(kHost, 1111, kExternal, 1111, "to itself")});
  EXPECT_EQ(result.packets[1].frame, udp(kExternal, 2222, kHost, 1111, "to the neighbour"));
  EXPECT_EQ(result.packets[2].frame, udp(kExternal, 1111, kOtherHost, 2222, "and back"));
  EXPECT_EQ(result.packets[3].frame, udp(kExternal, 1111, kHost, 1111, "to itself"));
  EXPECT_EQ(result.records[1],
            R"({"packet":1,"nf":"nat","verdict":"pass","from":"10.0.0.9:2222","to":"203.0.113.1:2222",)"
            R"("hairpin_from":"203.0.113.1:1111","hairpin_to":"10.0.0.5:1111"})");
}

TEST(Nat, other_protocols_are_dropped_because_they_would_show_internal_addresses) {
  const std::vector<std::uint8_t> nothing;
  const RunResult result =
      run_everywhere({make_frame(47, kHost, kServer, 0, 0, "gre"), make_frame(50, kServer, kExternal, 0, 0, "esp"),
                      make_icmp(13, 0, kHost, kServer, 0, nothing)});
  EXPECT_EQ(result.dropped("unsupported_protocol"), 3U);
}

TEST(Nat, transport_headers_that_are_cut_short_are_malformed) {
  std::vector<Frame> frames;
  for (const std::uint8_t protocol : {kTcpProtocol, kUdpProtocol, kIcmpProtocol}) {
    const Frame whole = protocol == kIcmpProtocol ? make_icmp(8, 0, kHost, kServer, 7 << 16, {})
                                                  : make_frame(protocol, kHost, kServer, 1000, 80, "");
    for (std::size_t length = kL4; length < whole.size(); ++length) {
      frames.push_back(ends_after(whole, length - kL4));
    }
  }
  const RunResult result = run_everywhere(frames);
  EXPECT_EQ(result.dropped("malformed"), frames.size());
  EXPECT_EQ(frames.size(), 20U + 8U + 8U);
}

TEST(Nat, a_udp_checksum_of_zero_stays_zero) {
  Frame out = udp(kHost, 1234, kServer, 53);
  store_be16(&out[kL4 + 6], 0);
  const RunResult result = run_everywhere({out});
  EXPECT_EQ(load_be16(&result.packets[0].frame[kL4 + 6]), 0);
  EXPECT_EQ(result.packets[0].frame, with_ends(out, kExternal, 1234, kServer, 53));
}

TEST(Nat, a_udp_checksum_that_comes_out_as_zero_is_sent_as_all_ones) {
  std::vector<Frame> frames;
  for (std::uint32_t word = 0; word <= 0xFFFF; word += 1) {
    const char payload[2] = {static_cast<char>(word >> 8), static_cast<char>(word)};
    Frame frame = udp(kHost, 1234, kServer, 53, std::string_view(payload, 2));
    const Frame translated = with_ends(frame, kExternal, 1234, kServer, 53);
    if (load_be16(&translated[kL4 + 6]) >= 0xFFF0 || load_be16(&frame[kL4 + 6]) >= 0xFFF0) {
      frames.push_back(std::move(frame));
    }
  }
  const RunResult result = run_everywhere(frames);
  std::uint32_t all_ones = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    ASSERT_EQ(result.packets[i].frame, with_ends(frames[i], kExternal, 1234, kServer, 53));
    all_ones += load_be16(&result.packets[i].frame[kL4 + 6]) == 0xFFFF ? 1U : 0U;
  }
  EXPECT_EQ(all_ones, 1U);
}

TEST(Nat, wrong_checksums_stay_wrong_by_the_same_amount) {
  std::vector<Frame> frames{udp(kHost, 1234, kServer, 53), make_segment(kHost, kServer, 1234, 80, kSyn),
                            echo_request(kHost, kServer, 99)};
  const std::size_t checksum_at[] = {kL4 + 6, kL4 + 16, kL4 + 2};
  const auto damage = [](Frame& frame, std::size_t at) {
    store_be16(&frame[at], static_cast<std::uint16_t>(load_be16(&frame[at]) ^ 0x0100));
  };
  for (std::size_t i = 0; i < frames.size(); ++i) {
    damage(frames[i], kL3 + 10);
    damage(frames[i], checksum_at[i]);
  }
  const RunResult result = run_everywhere(frames);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_NE(internet_checksum(std::span(result.packets[i].frame).subspan(kL3, 20)), 0);
    EXPECT_FALSE(has_right_checksums(result.packets[i].frame));
    // the one's complement error of the header is what it was
    EXPECT_EQ(internet_checksum(std::span(result.packets[i].frame).subspan(kL3, 20)),
              internet_checksum(std::span(frames[i]).subspan(kL3, 20)));
  }
}

TEST(Nat, options_and_vlan_tags_do_not_matter) {
  const Frame out = udp(kHost, 1234, kServer, 53);
  const Frame options = with_checksums(with_options(out, 1));
  const RunResult result = run_everywhere({options, with_vlan(out, 1)});
  EXPECT_EQ(result.packets[0].frame, with_ends(options, kExternal, 1234, kServer, 53));
  EXPECT_EQ(result.packets[1].frame, with_vlan(with_ends(out, kExternal, 1234, kServer, 53), 1));
}

// ---- Limits

TEST(Nat, a_host_that_takes_every_port_exhausts_the_pool_and_nothing_else) {
  constexpr std::string_view kFewPorts = "inside: [10.0.0.0/8]\nexternal: [203.0.113.1]\nports: 2000-2009\n";
  std::vector<Frame> frames;
  for (std::uint32_t host = 0; host < 12; ++host) {
    frames.push_back(udp(kHost + host, 2000, kServer, 53));
  }
  frames.push_back(make_segment(kHost, kServer, 2000, 80, kSyn));
  const RunResult result = run_everywhere(frames, kFewPorts);
  std::set<std::uint16_t> ports;
  for (std::size_t i = 0; i < 10; ++i) {
    ports.insert(source_port_of(result.packets[i].frame));
  }
  EXPECT_EQ(ports.size(), 10U);
  EXPECT_EQ(*ports.begin(), 2000);
  EXPECT_EQ(*ports.rbegin(), 2009);
  EXPECT_FALSE(passed(result, 10));
  EXPECT_FALSE(passed(result, 11));
  EXPECT_EQ(result.dropped("pool_exhausted"), 2U);
  EXPECT_EQ(source_port_of(result.packets[12].frame), 2000);
}

TEST(Nat, no_more_than_max_mappings_live_and_expired_ones_make_room) {
  const std::string yaml = concat(kOneAddress, "max_mappings: 2\n");
  const RunResult result =
      run_everywhere({udp(kHost, 1, kServer, 53), udp(kHost, 2, kServer, 53), udp(kHost, 3, kServer, 53),
                      udp(kHost, 1, kServer, 53), udp(kHost, 3, kServer, 53)},
                     yaml, {0, 1 * kSecond, 2 * kSecond, 200 * kSecond, 302 * kSecond});
  EXPECT_EQ(result.dropped("pool_exhausted"), 1U);
  EXPECT_FALSE(passed(result, 2));
  EXPECT_TRUE(passed(result, 4)) << "the mapping of port 2 was idle for 301 s";
  EXPECT_EQ(statistic(result, "mappings"), 2U);
  EXPECT_EQ(statistic(result, "mappings_peak"), 2U);
  EXPECT_EQ(statistic(result, "mappings_created"), 3U);
  EXPECT_EQ(statistic(result, "mappings_expired"), 1U);
}

// ---- Time

/// Whether an inbound packet at `probe_s` still finds the mapping that `frames` made at `times_s`.
bool is_mapped_at(std::vector<Frame> frames, std::vector<std::uint64_t> times_s, Frame const& probe,
                  std::uint64_t probe_s, std::string_view yaml = kOneAddress) {
  frames.push_back(probe);
  times_s.push_back(probe_s);
  for (std::uint64_t& time : times_s) {
    time *= kSecond;
  }
  return passed(run_everywhere(frames, yaml, times_s), frames.size() - 1);
}

TEST(Nat, udp_mappings_live_for_five_minutes_after_the_last_outbound_packet) {
  const Frame out = udp(kHost, 1234, kServer, 53);
  const Frame in = udp(kServer, 53, kExternal, 1234);
  EXPECT_TRUE(is_mapped_at({out}, {0}, in, 300));
  EXPECT_FALSE(is_mapped_at({out}, {0}, in, 301));
  EXPECT_TRUE(is_mapped_at({out, out}, {0, 299}, in, 599)) << "outbound packets refresh";
  EXPECT_FALSE(is_mapped_at({out, in}, {0, 299}, in, 301)) << "inbound ones do not";
}

TEST(Nat, echo_mappings_live_for_a_minute) {
  const Frame out = echo_request(kHost, kServer, 7);
  const Frame in = echo_reply(kServer, kExternal, 7);
  EXPECT_TRUE(is_mapped_at({out}, {0}, in, 60));
  EXPECT_FALSE(is_mapped_at({out}, {0}, in, 61));
}

TEST(Nat, tcp_mappings_live_by_the_state_of_their_connection) {
  const auto out = [](std::uint8_t flags) { return make_segment(kHost, kServer, 1234, 80, flags); };
  const auto in = [](std::uint8_t flags) { return make_segment(kServer, kExternal, 80, 1234, flags); };
  const std::vector<Frame> opened{out(kSyn), in(kSyn | kAck), out(kAck)};
  const auto then = [&opened](std::initializer_list<Frame> more) {
    std::vector<Frame> frames = opened;
    frames.insert(frames.end(), more);
    return frames;
  };
  const Frame probe = in(kAck);
  EXPECT_TRUE(is_mapped_at({out(kSyn)}, {0}, probe, 240));
  EXPECT_FALSE(is_mapped_at({out(kSyn)}, {0}, probe, 241));
  EXPECT_FALSE(is_mapped_at({out(kSyn), in(kAck)}, {0, 0}, probe, 241)) << "the outside alone establishes nothing";
  EXPECT_TRUE(is_mapped_at(opened, {0, 0, 0}, probe, 7440));
  EXPECT_FALSE(is_mapped_at(opened, {0, 0, 0}, probe, 7441));
  EXPECT_TRUE(is_mapped_at(then({out(kFin | kAck)}), {0, 0, 0, 0}, probe, 7440)) << "half closed";
  EXPECT_FALSE(is_mapped_at(then({out(kFin | kAck), in(kFin | kAck)}), {0, 0, 0, 0, 0}, probe, 241));
  EXPECT_TRUE(is_mapped_at(then({in(kRst)}), {0, 0, 0, 100}, probe, 340));
  EXPECT_FALSE(is_mapped_at(then({in(kRst)}), {0, 0, 0, 100}, probe, 341));
  EXPECT_FALSE(is_mapped_at(then({out(kRst), in(kAck)}), {0, 0, 0, 0, 0}, probe, 241)) << "late segments";
  EXPECT_TRUE(
      is_mapped_at(then({out(kRst), out(kSyn), in(kSyn | kAck), out(kAck)}), {0, 0, 0, 0, 0, 0, 0}, probe, 7440))
      << "opened again";
}

TEST(Nat, one_forged_rst_ends_no_connection_that_goes_on) {
  const auto out = [](std::uint8_t flags, std::string_view data = "") {
    return make_segment(kHost, kServer, 1234, 80, flags, data);
  };
  const auto in = [](std::uint8_t flags) { return make_segment(kServer, kExternal, 80, 1234, flags); };
  const std::vector<Frame> opened{out(kSyn), in(kSyn | kAck), out(kAck)};
  const auto mapped = [&opened, &in](std::initializer_list<Frame> more, std::uint64_t probe_s) {
    std::vector<Frame> frames = opened;
    frames.insert(frames.end(), more);
    std::vector<std::uint64_t> times(frames.size(), 0);
    return is_mapped_at(std::move(frames), std::move(times), in(kAck), probe_s);
  };
  EXPECT_FALSE(mapped({in(kRst)}, 241)) << "nobody went on";
  EXPECT_TRUE(mapped({in(kRst), out(kAck)}, 7440));
  EXPECT_FALSE(mapped({in(kRst), out(kAck)}, 7441));
  EXPECT_TRUE(mapped({in(kRst), in(kRst | kAck), in(kSyn), out(kAck)}, 7440)) << "nor do more of them";
  EXPECT_FALSE(mapped({in(kRst), in(kAck)}, 241)) << "the outside alone keeps nothing";
  EXPECT_FALSE(mapped({out(kFin | kAck), in(kFin | kAck), out(kAck), out(kAck, "sent again")}, 241));
  EXPECT_TRUE(mapped({out(kFin | kAck), in(kFin | kAck), out(kSyn), in(kSyn | kAck), out(kAck)}, 7440))
      << "another connection";
  EXPECT_FALSE(mapped({out(kFin | kAck), in(kFin | kAck), out(kAck)}, 241));
}

TEST(Nat, time_outs_are_configurable) {
  constexpr std::string_view kShort =
      "inside: [10.0.0.0/8]\nexternal: [203.0.113.1]\n"
      "timeouts: {udp: 10, tcp_established: 20, tcp_opening: 5, tcp_closing: 7, icmp: 3}\n";
  EXPECT_TRUE(is_mapped_at({udp(kHost, 1234, kServer, 53)}, {0}, udp(kServer, 53, kExternal, 1234), 10, kShort));
  EXPECT_FALSE(is_mapped_at({udp(kHost, 1234, kServer, 53)}, {0}, udp(kServer, 53, kExternal, 1234), 11, kShort));
  EXPECT_FALSE(is_mapped_at({make_segment(kHost, kServer, 1234, 80, kSyn)}, {0},
                            make_segment(kServer, kExternal, 80, 1234, kSyn | kAck), 6, kShort));
  EXPECT_FALSE(is_mapped_at({echo_request(kHost, kServer, 7)}, {0}, echo_reply(kServer, kExternal, 7), 4, kShort));
  const Frame probe = make_segment(kServer, kExternal, 80, 1234, kAck);
  std::vector<Frame> opened{make_segment(kHost, kServer, 1234, 80, kSyn),
                            make_segment(kServer, kExternal, 80, 1234, kSyn | kAck),
                            make_segment(kHost, kServer, 1234, 80, kAck)};
  EXPECT_TRUE(is_mapped_at(opened, {0, 0, 0}, probe, 20, kShort));
  EXPECT_FALSE(is_mapped_at(opened, {0, 0, 0}, probe, 21, kShort));
  opened.push_back(make_segment(kHost, kServer, 1234, 80, kRst));
  EXPECT_TRUE(is_mapped_at(opened, {0, 0, 0, 0}, probe, 7, kShort));
  EXPECT_FALSE(is_mapped_at(opened, {0, 0, 0, 0}, probe, 8, kShort));
}

TEST(Nat, a_clock_that_goes_back_or_jumps_ends_nothing_early) {
  const Frame out = udp(kHost, 1234, kServer, 53);
  const Frame in = udp(kServer, 53, kExternal, 1234);
  EXPECT_TRUE(is_mapped_at({out, out}, {1000, 10}, in, 1300)) << "the second packet counts as of 1000 s";
  EXPECT_TRUE(is_mapped_at({out}, {1000}, in, 0));
  const RunResult result = run_everywhere({out, in, out, in}, kOneAddress, {~std::uint64_t{0}, 0, 5, 6});
  EXPECT_EQ(result.dropped("no_mapping"), 0U);
}

TEST(Nat, after_one_stamp_far_ahead_mappings_still_end) {
  std::vector<Frame> frames{udp(kHost, 2001, kServer, 53), udp(kHost, 2002, kServer, 53)};
  std::vector<std::uint64_t> times{1000 * kSecond, 500'000'000 * kSecond};
  for (std::uint32_t i = 0; i < packet::PacketClock::kStepPackets; ++i) {
    frames.push_back(udp(kHost, 2003, kServer, 53));
    times.push_back(1001 * kSecond);
  }
  frames.push_back(udp(kServer, 53, kExternal, 2002));
  times.push_back(1301 * kSecond);
  frames.push_back(udp(kServer, 53, kExternal, 2002));
  times.push_back(1302 * kSecond);
  const RunResult result = run_everywhere(frames, kOneAddress, times);
  EXPECT_TRUE(passed(result, frames.size() - 2)) << "300 s after its last packet";
  EXPECT_FALSE(passed(result, frames.size() - 1)) << "301 s after it";
}

/// What a live link without packets is to a NAT.
TEST(Nat, a_tick_ends_mappings_without_a_packet) {
  auto nat = make();
  ASSERT_TRUE(nat.ok()) << nat.status();
  const std::vector<Frame> frames{udp(kHost, 1, kServer, 53)};
  const std::vector<std::uint64_t> times{1'700'000'000 * kSecond};
  nf::testing::PacketStore store(frames, times);
  std::vector<std::byte> aux(catena_nf_nat().aux_bytes);
  nf::Outcome outcome(catena_nf_nat().drop_reasons.size(), false);
  (*nat)->prepare(store.all(), aux, outcome);
  const auto live = [&nat] { return (*nat)->statistics()[0].value; };
  (*nat)->tick(times[0] + 300 * kSecond);
  EXPECT_EQ(live(), 1U);
  (*nat)->tick(times[0] + 301 * kSecond);
  EXPECT_EQ(live(), 0U);
}

TEST(Nat, an_expired_endpoint_may_get_another_port_and_frees_its_own) {
  const RunResult result =
      run_everywhere({udp(kHost, 1234, kServer, 53), udp(kOtherHost, 1234, kServer, 53), udp(kHost, 1234, kServer, 53)},
                     kOneAddress, {0, 302 * kSecond, 303 * kSecond});
  EXPECT_EQ(source_port_of(result.packets[1].frame), 1234);
  EXPECT_EQ(source_port_of(result.packets[2].frame), 1236);
}

TEST(Nat, hours_of_short_flows_reuse_the_memory_of_a_few_mappings) {
  const std::string yaml = concat(kOneAddress, "max_mappings: 20\n");
  std::vector<Frame> frames;
  std::vector<std::uint64_t> times;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    frames.push_back(udp(kHost + i % 77, static_cast<std::uint16_t>(1024 + i * 7), kServer, 53));
    times.push_back(i * 20 * kSecond);  // 16 live at a time
  }
  const RunResult result = run_everywhere(frames, yaml, times);
  EXPECT_EQ(result.dropped("pool_exhausted"), 0U);
  EXPECT_EQ(statistic(result, "mappings_created"), 2000U);
  EXPECT_LE(statistic(result, "mappings_peak"), 16U);
}

// ---- Fragments

TEST(Nat, later_fragments_follow_the_first_one_in_both_directions) {
  const Frame out = udp(kHost, 1234, kServer, 53, std::string(100, 'x'));
  const Frame in = udp(kServer, 53, kExternal, 1234, std::string(90, 'y'));
  const auto [out_first, out_second] = in_two(out, 77, 64);
  const auto [in_first, in_second] = in_two(in, 78, 48);
  const RunResult result = run_everywhere({out_first, in_first, out_second, in_second});
  const auto [out_first_expected, out_second_expected] = in_two(with_ends(out, kExternal, 1234, kServer, 53), 77, 64);
  const auto [in_first_expected, in_second_expected] = in_two(with_ends(in, kServer, 53, kHost, 1234), 78, 48);
  EXPECT_EQ(result.packets[0].frame, out_first_expected);
  EXPECT_EQ(result.packets[1].frame, in_first_expected);
  EXPECT_EQ(result.packets[2].frame, out_second_expected);
  EXPECT_EQ(result.packets[3].frame, in_second_expected);
  EXPECT_EQ(result.records[2], R"({"packet":2,"nf":"nat","verdict":"pass","from":"10.0.0.5","to":"203.0.113.1"})");
}

TEST(Nat, a_later_fragment_without_its_first_is_dropped) {
  const auto [first, second] = in_two(udp(kHost, 1234, kServer, 53, std::string(100, 'x')), 77, 64);
  const auto [other_first, other_second] = in_two(udp(kHost, 1234, kServer, 53, std::string(100, 'x')), 78, 64);
  const RunResult result = run_everywhere({second, first, second, other_second, second, second}, kOneAddress,
                                          {0, 0, 0, 0, 30 * kSecond, 31 * kSecond});
  EXPECT_FALSE(passed(result, 0)) << "before the first";
  EXPECT_TRUE(passed(result, 2));
  EXPECT_FALSE(passed(result, 3)) << "of another datagram";
  EXPECT_TRUE(passed(result, 4));
  EXPECT_FALSE(passed(result, 5)) << "after 30 s";
  EXPECT_EQ(result.dropped("fragment"), 3U);
}

TEST(Nat, fragments_of_echoes_and_hairpins_follow_too) {
  std::vector<std::uint8_t> body(200, 'z');
  const auto [echo_first, echo_second] = in_two(make_icmp(8, 0, kHost, kServer, 7 << 16, body), 5, 64);
  const auto [pin_first, pin_second] = in_two(udp(kOtherHost, 2222, kExternal, 1111, std::string(64, 'p')), 6, 16);
  const RunResult result =
      run_everywhere({udp(kHost, 1111, kServer, 53), echo_first, pin_first, echo_second, pin_second});
  EXPECT_EQ(source_of(result.packets[3].frame), kExternal);
  EXPECT_EQ(destination_of(result.packets[3].frame), kServer);
  EXPECT_EQ(source_of(result.packets[4].frame), kExternal);
  EXPECT_EQ(destination_of(result.packets[4].frame), kHost);
}

TEST(Nat, more_datagrams_in_fragments_than_there_is_room_for_evict_the_oldest) {
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i <= FragmentTable::kDatagrams; ++i) {
    frames.push_back(
        in_two(udp(kHost, 1234, kServer + i / 65536, 53, "0123456789abcdef"), static_cast<std::uint16_t>(i), 16).first);
  }
  frames.push_back(in_two(udp(kHost, 1234, kServer, 53, "0123456789abcdef"), 0, 16).second);
  frames.push_back(in_two(udp(kHost, 1234, kServer, 53, "0123456789abcdef"), 1, 16).second);
  nf::testing::RunOptions options;
  options.unit_size = 256;
  const auto result = nf::testing::run(catena_nf_nat(), std::move(*make()), frames, nullptr, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(statistic(*result, "fragments_evicted"), 1U);
  EXPECT_FALSE(passed(*result, frames.size() - 2));
  EXPECT_TRUE(passed(*result, frames.size() - 1));
}

// ---- ICMP errors

/// Frames of every protocol that host 10.0.0.5 sends, and what becomes of them at 203.0.113.1.
std::vector<std::pair<Frame, Frame>> sent_and_translated() {
  std::vector<std::pair<Frame, Frame>> result;
  for (Frame const& frame :
       {udp(kHost, 1234, kServer, 53, "some payload"),
        make_frame(kTcpProtocol, kHost, kServer, 1235, 80, "some payload"), echo_request(kHost, kServer, 1236)}) {
    const bool is_echo = frame[kL3 + 9] == kIcmpProtocol;
    const std::uint16_t port = load_be16(&frame[is_echo ? kL4 + 4 : kL4]);
    result.emplace_back(frame, with_ends(frame, kExternal, port, kServer, destination_port_of(frame)));
  }
  return result;
}

TEST(Nat, errors_from_outside_quote_the_datagram_that_the_host_sent) {
  constexpr std::uint32_t kRouter = 0xC0000201;
  for (const std::uint8_t type : std::initializer_list<std::uint8_t>{3, 4, 11, 12}) {
    for (const std::size_t quoted : {8U, 16U, 18U, 28U}) {
      std::vector<Frame> frames;
      std::vector<Frame> expected;
      for (auto const& [sent, translated] : sent_and_translated()) {
        frames.push_back(sent);
        expected.push_back(translated);
        frames.push_back(make_error(type, kRouter, translated, quoted));
        expected.push_back(make_error(type, kRouter, sent, quoted));
      }
      const RunResult result = run_everywhere(frames);
      for (std::size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(result.packets[i].frame, expected[i]) << i << ", type " << int{type} << ", " << quoted << " bytes";
        EXPECT_TRUE(has_right_checksums(result.packets[i].frame));
      }
    }
  }
}

TEST(Nat, prepare_marks_the_packets_whose_payload_it_rewrites) {
  std::vector<Frame> frames;
  for (auto const& [sent, translated] : sent_and_translated()) {
    frames.push_back(sent);
    frames.push_back(make_error(3, 0xC0000201, translated, 28));
  }
  auto nat = make();
  ASSERT_TRUE(nat.ok()) << nat.status();
  nf::testing::PacketStore store(frames);
  const packet::Batch batch = store.all();
  std::vector<std::vector<std::uint8_t>> before;
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    before.emplace_back(batch[i].payload().begin(), batch[i].payload().end());
  }
  std::vector<std::byte> aux(frames.size() * catena_nf_nat().aux_bytes);
  nf::Outcome outcome(catena_nf_nat().drop_reasons.size(), false);
  (*nat)->prepare(batch, aux, outcome);
  std::uint32_t marked = 0;
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    const bool changed = !std::equal(before[i].begin(), before[i].end(), batch[i].payload().begin());
    EXPECT_EQ(batch[i].is_rewritten(), changed) << i;
    marked += changed ? 1 : 0;
  }
  EXPECT_EQ(marked, frames.size() / 2);
}

TEST(Nat, errors_from_outside_restore_ports_that_were_changed) {
  const Frame other = udp(kOtherHost, 1234, kServer, 53);
  const Frame translated = with_ends(udp(kHost, 1234, kServer, 53), kExternal, 1236, kServer, 53);
  const RunResult result = run_everywhere({other, udp(kHost, 1234, kServer, 53), make_error(3, kServer, translated),
                                           echo_request(kOtherHost, kServer, 9), echo_request(kHost, kServer, 9),
                                           make_error(11, kServer, echo_request(kExternal, kServer, 11))});
  EXPECT_EQ(result.packets[1].frame, translated);
  EXPECT_EQ(result.packets[2].frame, make_error(3, kServer, udp(kHost, 1234, kServer, 53)));
  EXPECT_EQ(result.packets[5].frame, make_error(11, kServer, echo_request(kHost, kServer, 9)));
  EXPECT_EQ(result.records[2], R"({"packet":2,"nf":"nat","verdict":"pass","icmp_error":3,)"
                               R"("from":"203.0.113.1:1236","to":"10.0.0.5:1234"})");
}

TEST(Nat, errors_to_the_outside_show_external_ends_only) {
  constexpr std::uint32_t kRouterInside = 0x0A0000FE;
  for (auto const& [sent, translated] : sent_and_translated()) {
    const Frame answer_outside = answer_to(translated);
    const Frame answer_inside = answer_to(sent);
    const RunResult result = run_everywhere(
        {sent, answer_outside, make_error(3, kHost, answer_inside), make_error(11, kRouterInside, answer_inside)});
    EXPECT_EQ(result.packets[1].frame, answer_inside);
    EXPECT_EQ(result.packets[2].frame, make_error(3, kExternal, answer_outside));
    EXPECT_EQ(result.packets[3].frame, make_error(11, kExternal, answer_outside));
  }
}

TEST(Nat, errors_about_hairpinned_packets_are_translated_at_both_ends) {
  const Frame received = udp(kExternal, 2222, kHost, 1111, "to the neighbour");
  const Frame sent = udp(kOtherHost, 2222, kExternal, 1111, "to the neighbour");
  const RunResult result = run_everywhere({udp(kHost, 1111, kServer, 53), sent, make_error(3, kHost, received)});
  EXPECT_EQ(result.packets[1].frame, received);
  EXPECT_EQ(result.packets[2].frame, make_error(3, kExternal, sent));
}

TEST(Nat, errors_about_what_nobody_sent_have_no_mapping) {
  const Frame never = udp(kExternal, 1234, kServer, 53);
  const RunResult result =
      run_everywhere({make_error(3, kServer, never), make_error(3, kServer, echo_request(kExternal, kServer, 7)),
                      make_error(3, kServer, make_frame(50, kExternal, kServer, 0, 0, "0123456")),
                      make_error(3, kHost, udp(kServer, 53, kHost, 1234)), echo_request(kHost, kServer, 7),
                      make_error(3, kServer, echo_reply(kExternal, kServer, 7)),
                      make_error(3, kHost, echo_request(kServer, kHost, 7))});
  EXPECT_EQ(result.dropped("no_mapping"), 6U);
}

TEST(Nat, errors_change_no_mapping_and_refresh_none) {
  const Frame out = udp(kHost, 1234, kServer, 53);
  const Frame error = make_error(3, kServer, with_ends(out, kExternal, 1234, kServer, 53));
  EXPECT_TRUE(is_mapped_at({out, error}, {0, 1}, udp(kServer, 53, kExternal, 1234), 300));
  EXPECT_FALSE(is_mapped_at({out, error}, {0, 200}, udp(kServer, 53, kExternal, 1234), 301));
}

TEST(Nat, damaged_errors_are_malformed_and_unchanged) {
  const Frame out = udp(kHost, 1234, kServer, 53, "0123456789");
  const Frame good = make_error(3, kServer, with_ends(out, kExternal, 1234, kServer, 53), 18);
  std::vector<Frame> frames{out};
  for (std::size_t at = kL4; at < good.size(); ++at) {  // the ICMP checksum sees any of these
    frames.push_back(good);
    frames.back()[at] ^= 0x40;
  }
  for (std::size_t body = 0; body < 28; ++body) {  // shorter than a header and 8 bytes
    frames.push_back(make_icmp(3, 3, kServer, kExternal, 0, std::span(good).subspan(kL4 + 8, body)));
  }
  const auto with_quote = [&](std::size_t at, std::uint8_t value, bool sum = true) {
    Frame quoted(good.begin() + kL4 + 8, good.end());
    quoted[at] = value;
    if (sum) {
      store_be16(&quoted[10], 0);
      store_be16(&quoted[10], internet_checksum(std::span(quoted).first(20)));
    }
    frames.push_back(make_icmp(3, 3, kServer, kExternal, 0, quoted));
  };
  with_quote(0, 0x65);         // version 6
  with_quote(0, 0x44);         // header of 16 bytes
  with_quote(0, 0x4F, false);  // header longer than the quote
  with_quote(8, 1, false);     // wrong header checksum
  with_quote(15, 2);           // quotes somebody else's datagram
  const RunResult result = run_everywhere(frames);
  std::uint64_t malformed = 0;
  for (std::size_t i = 1; i < frames.size(); ++i) {
    EXPECT_FALSE(passed(result, i)) << i;
    EXPECT_EQ(result.packets[i].frame, frames[i]);
    malformed += frames[i][kL4] == 3 ? 1U : 0U;
  }
  EXPECT_EQ(result.dropped("malformed"), malformed);
  EXPECT_EQ(result.dropped("unsupported_protocol"), frames.size() - 1 - malformed) << "a type that is no error's";
}

TEST(Nat, errors_about_or_in_fragments_have_no_ports_to_go_by) {
  const Frame out = udp(kHost, 1234, kServer, 53, std::string(64, 'x'));
  const auto [first, second] = in_two(with_ends(out, kExternal, 1234, kServer, 53), 9, 32);
  const Frame whole = make_error(3, kServer, with_ends(out, kExternal, 1234, kServer, 53), 40);
  const RunResult result = run_everywhere(
      {out, make_error(11, kServer, second), in_two(whole, 3, 48).first, make_error(11, kServer, first)});
  EXPECT_EQ(result.dropped("fragment"), 2U);
  EXPECT_TRUE(passed(result, 3)) << "the first fragment has ports";
}

// ---- Random traffic

struct Flow {
  std::uint8_t protocol;
  std::uint32_t address;
  std::uint16_t port;
  auto operator<=>(Flow const&) const = default;
};

/// Outbound packets of hosts that often use the same ports.
std::vector<Frame> random_outbound(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  const auto below = [&engine](std::uint32_t limit) { return static_cast<std::uint32_t>(engine() % limit); };
  std::vector<Frame> frames;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t source = 0x0A000000 + below(300);
    const std::uint32_t destination = 0x08000000 + below(1U << 24);
    const auto port = static_cast<std::uint16_t>(below(4) == 0 ? below(65536) : 5000 + below(8));
    const std::string payload(below(40), static_cast<char>(below(256)));
    switch (below(3)) {
      case 0:
        frames.push_back(echo_request(source, destination, port, static_cast<std::uint16_t>(i)));
        break;
      case 1:
        frames.push_back(make_frame(kTcpProtocol, source, destination, port, 80, payload));
        break;
      default:
        frames.push_back(udp(source, port, destination, 53, payload));
        break;
    }
  }
  return frames;
}

Flow flow_of(Frame const& frame) {
  const std::uint8_t protocol = frame[kL3 + 9];
  return {protocol, source_of(frame), load_be16(&frame[kL4 + (protocol == kIcmpProtocol ? 4 : 0)])};
}

constexpr std::string_view kFourExternal = "inside: [10.0.0.0/8]\nexternal: [203.0.113.1-203.0.113.4]\n";

TEST(Nat, random_traffic_holds_the_properties_of_the_rfcs) {
  const std::vector<Frame> frames = random_outbound(6000, 1);
  const RunResult result = run_everywhere(frames, kFourExternal);
  std::map<Flow, Flow> external_of;
  std::map<Flow, Flow> internal_of;
  std::map<std::uint32_t, std::uint32_t> address_of;
  std::set<std::uint32_t> used;
  std::uint64_t kept = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    ASSERT_TRUE(passed(result, i));
    Frame const& out = result.packets[i].frame;
    ASSERT_TRUE(has_right_checksums(out)) << i;
    const Flow inside = flow_of(frames[i]);
    const Flow outside = flow_of(out);
    ASSERT_EQ(external_of.emplace(inside, outside).first->second, outside) << "REQ-1: whatever the destination";
    ASSERT_EQ(internal_of.emplace(outside, inside).first->second, inside) << "no two share an external endpoint";
    ASSERT_EQ(address_of.emplace(inside.address, outside.address).first->second, outside.address) << "REQ-2: paired";
    ASSERT_EQ(inside.port % 2, outside.port % 2) << "REQ-4";
    ASSERT_TRUE(outside.address >= kExternal && outside.address < kExternal + 4);
    ASSERT_TRUE(outside.protocol == kIcmpProtocol || outside.port >= 1024);
    used.insert(outside.address);
    kept += inside.port == outside.port ? 1 : 0;
  }
  EXPECT_EQ(used.size(), 4U);
  EXPECT_GT(kept, 0U);
  EXPECT_LT(kept, frames.size());
  EXPECT_EQ(statistic(result, "mappings"), external_of.size());
}

TEST(Nat, answers_through_the_same_instance_come_back_as_the_hosts_expect_them) {
  std::vector<Frame> frames = random_outbound(3000, 2);
  const std::size_t count = frames.size();
  const RunResult there = run_everywhere(frames, kFourExternal);
  for (std::size_t i = 0; i < count; ++i) {
    frames.push_back(answer_to(there.packets[i].frame));
  }
  const RunResult back = run_everywhere(frames, kFourExternal);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(back.packets[i].frame, there.packets[i].frame);
    ASSERT_EQ(back.packets[count + i].frame, answer_to(frames[i])) << i;
  }
}

TEST(Nat, damaged_traffic_in_any_byte_gives_the_same_everywhere) {
  std::mt19937 engine(3);
  std::vector<Frame> frames = random_outbound(300, 4);
  const std::size_t good = frames.size();
  const RunResult there = run_everywhere(frames);
  for (std::size_t i = 0; i < good; ++i) {
    if (passed(there, i)) {
      frames.push_back(answer_to(there.packets[i].frame));
      frames.push_back(make_error(3, kServer, there.packets[i].frame, 8 + engine() % 20));
    }
  }
  std::vector<std::uint64_t> times;
  for (std::size_t i = 0, count = frames.size(); i < 3 * count; ++i) {
    Frame frame = frames[engine() % count];
    for (std::uint32_t flips = static_cast<std::uint32_t>(engine() % 4); flips > 0; --flips) {
      frame[engine() % frame.size()] = static_cast<std::uint8_t>(engine() % 3 == 0 ? 0xFF : engine());
    }
    if (engine() % 4 == 0) {
      frame.resize(engine() % (frame.size() + 1));
    }
    frames.push_back(std::move(frame));
  }
  frames.emplace_back();
  for (std::size_t i = 0; i < frames.size(); ++i) {
    times.push_back(engine() % 50 == 0 ? std::uint64_t{engine()} * kSecond / 1000 : i);
  }
  const RunResult result = run_everywhere(frames, kOneAddress, times);
  EXPECT_EQ(result.packets.size(), frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    ASSERT_EQ(result.packets[i].frame.size(), frames[i].size());
    ASSERT_TRUE(passed(result, i) || result.packets[i].frame == frames[i]) << "a dropped packet keeps its bytes";
  }
}

TEST(Nat, every_value_of_every_header_byte_survives) {
  const Frame out = udp(kHost, 1234, kServer, 53);
  const Frame error = make_error(3, kServer, with_ends(out, kExternal, 1234, kServer, 53), 12);
  std::vector<Frame> frames{out};
  for (Frame const& base : {out, error}) {
    for (std::size_t at = 12; at < base.size(); ++at) {
      for (const std::uint8_t value : std::initializer_list<std::uint8_t>{0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF}) {
        frames.push_back(base);
        frames.back()[at] = value;
      }
    }
  }
  const RunResult result = run_everywhere(frames);
  EXPECT_EQ(result.packets.size(), frames.size());
}

TEST(Nat, the_kernel_does_the_rewriting_on_devices) {
  const std::vector<Frame> frames = random_outbound(200, 5);
  for (device::Device* device : nf::testing::devices()) {
    const auto result = nf::testing::run(catena_nf_nat(), std::move(*make()), frames, device);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->counters.device_packets, result->counters.processed);
  }
}

TEST(Nat, start_report_tells_addresses_ports_and_memory) {
  EXPECT_THAT((*make(concat(kFourExternal, "\nmax_mappings: 1000000\n")))->start_report(),
              ElementsAre(HasSubstr("4 external addresses with ports 1024 to 65535, at most 1000000 mappings in 12")));
}

}  // namespace
}  // namespace catena::nat::testing
