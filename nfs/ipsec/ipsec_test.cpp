// SPDX-License-Identifier: Apache-2.0
// What the NF does with packets, on the CPU and on every device. Whether its bytes are ESP is for oracle_test.cpp.
#include "ipsec_testing.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <random>

namespace catena::ipsec::testing {
namespace {

using nf::testing::make_frame;
using nf::testing::with_fragment;
using ::testing::HasSubstr;

constexpr std::string_view kSaFile = R"(associations:
  - spi: 4096
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: 000102030405060708090a0b0c0d0e0ff0f1f2f3
    authentication_key: 303132333435363738393a3b3c3d3e3f40414243
    selector: {destination: 10.2.0.0/16, protocol: udp}
  - spi: 4097
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: a0a1a2a3a4a5a6a7a8a9aaabacadaeafdeadbeef
    authentication_key: 505152535455565758595a5b5c5d5e5f60616263
    selector: {destination: 10.0.0.0/8}
    udp_encapsulation: {source_port: 4500, destination_port: 4500}
)";
constexpr std::uint32_t kOuterTunnelEnd = 0xC6336401;

/// The file with a line added to its first association.
std::string with_sa_line(std::string_view line) {
  std::string text(kSaFile);
  const std::size_t at = text.find("    selector");
  return text.insert(at, concat("    ", line, "\n"));
}

Frame udp(std::uint32_t destination, std::string_view payload = "hello", std::uint32_t source = 0x0A010001) {
  return make_frame(packet::kProtocolUdp, source, destination, 1000, 2000, payload);
}
Frame tcp(std::uint32_t destination, std::string_view payload = "hello") {
  return make_frame(packet::kProtocolTcp, 0x0A010001, destination, 1000, 2000, payload);
}

/// `count` packets through the first tunnel.
std::vector<Frame> plain(std::uint32_t count) {
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < count; ++i) {
    frames.push_back(udp(0x0A020000 + i % 200, std::string(i % 97, static_cast<char>('a' + i % 26))));
  }
  return frames;
}

std::vector<Frame> encrypted(std::vector<Frame> const& frames, std::string_view sa_file = kSaFile) {
  return frames_of(run_everywhere("encrypt", sa_file, frames, "", {64}));
}

TEST(Encrypt, grows_by_is_what_an_average_frame_grows_by) {
  std::vector<Frame> frames;
  for (const std::uint32_t destination : {0x0A020001U, 0x0A030001U}) {  // the second tunnel is one in UDP
    for (std::uint32_t bytes = 100; bytes < 104; ++bytes) {
      frames.push_back(udp(destination, std::string(bytes, 'x')));
    }
  }
  const auto total = [](std::vector<Frame> const& all) {
    return std::accumulate(all.begin(), all.end(), 0.0,
                           [](double sum, Frame const& one) { return sum + static_cast<double>(one.size()); });
  };
  const double growth = (total(encrypted(frames)) - total(frames)) / static_cast<double>(frames.size());
  EXPECT_EQ((*make("encrypt", kSaFile))->grows_by(), growth);
  EXPECT_EQ((*make("decrypt", kSaFile))->grows_by(), -growth);
}

TEST(Encrypt, first_selector_in_file_order_wins) {
  const RunResult result =
      run_everywhere("encrypt", kSaFile, {udp(0x0A020001), udp(0x0A030001), tcp(0x0A020001), tcp(0x0B000001)});
  EXPECT_THAT(result.records, ::testing::ElementsAre(R"({"packet":0,"nf":"ipsec","verdict":"pass","spi":4096,"seq":1})",
                                                     R"({"packet":1,"nf":"ipsec","verdict":"pass","spi":4097,"seq":1})",
                                                     R"({"packet":2,"nf":"ipsec","verdict":"pass","spi":4097,"seq":2})",
                                                     R"({"packet":3,"nf":"ipsec","verdict":"drop","reason":"no_sa"})"));
  EXPECT_EQ(result.dropped("no_sa"), 1U);
}

TEST(Encrypt, ends_when_sequence_numbers_do) {
  const RunResult result = run_everywhere("encrypt", with_sa_line("first_sequence: 4294967294"), plain(4));
  EXPECT_EQ(result.dropped("sequence_exhausted"), 2U);
  EXPECT_EQ(result.records.at(1), R"({"packet":1,"nf":"ipsec","verdict":"pass","spi":4096,"seq":4294967295})");
  EXPECT_EQ(result.records.at(2), R"({"packet":2,"nf":"ipsec","verdict":"drop","reason":"sequence_exhausted"})");
}

TEST(Encrypt, drops_what_exceeds_the_mtu_and_may_not_be_cut_and_nothing_shorter) {
  // 28 bytes of headers: with 970 of payload the text has 1000 bytes, with 971 it has 1004
  const std::vector<Frame> frames{udp(0x0A020001, std::string(970, 'x')), udp(0x0A020001, std::string(971, 'x'))};
  const RunResult result = run_everywhere("encrypt", with_sa_line("df: set"), frames, "mtu: 1048");
  EXPECT_EQ(result.packets.at(0).frame.size(), 14U + 1048);
  EXPECT_EQ(result.records.at(1), R"({"packet":1,"nf":"ipsec","verdict":"drop","reason":"too_long"})");
  EXPECT_EQ(result.packets.at(1).frame, frames[1]);
  EXPECT_EQ(result.dropped("too_long"), 1U);
}

TEST(Encrypt, a_dropped_packet_uses_no_sequence_number) {
  const std::vector<Frame> frames{udp(0x0A020001), udp(0x0A020001, std::string(1200, 'x')), udp(0x0A020001)};
  const RunResult result = run_everywhere("encrypt", with_sa_line("df: set"), frames, "mtu: 1048");
  EXPECT_EQ(result.records.at(2), R"({"packet":2,"nf":"ipsec","verdict":"pass","spi":4096,"seq":2})");
}

TEST(Encrypt, takes_the_longest_frame) {
  const std::vector<Frame> frames{udp(0x0A020001, std::string(packet::kMaxFrameBytes - 42, 'x')),
                                  tcp(0x0A020001, std::string(packet::kMaxFrameBytes - 54, 'x'))};
  ASSERT_EQ(frames[0].size(), packet::kMaxFrameBytes);
  const RunResult result = run_everywhere("encrypt", kSaFile, frames, "mtu: 2034");
  EXPECT_EQ(survivors(result).size(), 2U);
}

TEST(Encrypt, leaves_ethernet_padding_behind) {
  Frame padded = udp(0x0A020001, "");
  const Frame bare = padded;
  padded.resize(60, 0xEE);
  expect_frames(encrypted({padded}), encrypted({bare}));
}

TEST(Encrypt, what_cannot_be_encrypted_does_not_leave_in_the_clear) {
  const Frame arp = nf::testing::make_arp_request(1, 2);
  Frame ipv6(60, 1);
  ipv6[12] = 0x86;
  ipv6[13] = 0xDD;
  Frame cut = udp(0x0A020001, "a datagram that a capture holds in part");
  cut.resize(50);
  const RunResult result = run_everywhere("encrypt", kSaFile, {arp, ipv6, cut});
  EXPECT_EQ(result.packets[0].verdict, packet::Verdict::kPass);
  EXPECT_EQ(result.packets[0].frame, arp);
  EXPECT_EQ(result.counters.link_local, 1U);
  EXPECT_EQ(result.counters.unsupported, 2U);
  EXPECT_EQ(result.dropped("unsupported"), 2U);
}

TEST(Encrypt, runs_without_packets) { EXPECT_TRUE(run_everywhere("encrypt", kSaFile, {}).packets.empty()); }

TEST(RoundTrip, gives_the_original_frames) {
  std::vector<Frame> frames = plain(300);
  for (std::uint32_t i = 0; i < 300; ++i) {
    frames.push_back(tcp(0x0A000000 + i, std::string(i * 5, 'y')));
  }
  for (unsigned words = 1; words <= 10; ++words) {
    frames.push_back(nf::testing::with_options(udp(0x0A020001, "options"), words));
  }
  for (const std::uint16_t word : std::initializer_list<std::uint16_t>{0x2000, 0x2064, 0x00C8}) {
    frames.push_back(with_fragment(udp(0x0A030001, "a part of a datagram"), word));
  }
  for (unsigned tags = 1; tags <= 2; ++tags) {
    frames.push_back(nf::testing::with_vlan(udp(0x0A020001, "tagged"), tags));
  }
  const RunResult there = run_everywhere("encrypt", kSaFile, frames, "mtu: 2034");
  ASSERT_EQ(survivors(there).size(), frames.size());
  const RunResult back = run_everywhere("decrypt", kSaFile, frames_of(there));
  ASSERT_EQ(survivors(back).size(), frames.size());
  expect_frames(frames_of(back), frames);
}

TEST(Decrypt, what_is_not_esp_for_us_passes_unchanged_and_unrecorded) {
  Frame ike = make_frame(packet::kProtocolUdp, 0x01020304, kOuterTunnelEnd, 4500, 4500, std::string("\0\0\0\0IKE", 7));
  const std::vector<Frame> frames{
      tcp(kOuterTunnelEnd),
      ike,
      make_frame(packet::kProtocolUdp, 0x01020304, kOuterTunnelEnd, 4500, 4500, "\xFF"),          // NAT-keepalive
      make_frame(packet::kProtocolUdp, 0x01020304, kOuterTunnelEnd, 4500, 4501, "another port"),  // not a tunnel's port
      make_frame(packet::kProtocolUdp, 0x01020304, 0x01010101, 4500, 4500, "somebody else's port 4500"),
  };
  const RunResult result = run_everywhere("decrypt", kSaFile, frames);
  expect_frames(frames_of(result), frames);
  EXPECT_TRUE(result.records.empty());
  EXPECT_EQ(survivors(result).size(), frames.size());
}

TEST(Decrypt, unknown_spi_or_destination_has_no_sa) {
  std::vector<Frame> frames = encrypted(plain(2));
  packet::store_be32(frames[0].data() + 34, 5000);
  packet::store_be32(frames[1].data() + 30, kOuterTunnelEnd + 1);
  frames.push_back(make_frame(packet::kProtocolUdp, 0x01020304, kOuterTunnelEnd, 4500, 4500, "SPI nobody knows"));
  const RunResult result = run_everywhere("decrypt", kSaFile, frames);
  EXPECT_EQ(result.dropped("no_sa"), 3U);
  EXPECT_EQ(result.records.at(0), R"({"packet":0,"nf":"ipsec","verdict":"drop","reason":"no_sa","spi":5000,"seq":1})");
}

TEST(Decrypt, esp_is_taken_with_and_without_udp) {
  // RFC 7296 section 2.23: the sender chooses; here the first packet loses the UDP header of its association
  Frame with_udp = encrypted({tcp(0x0A020001)}).at(0);
  Frame without = with_udp;
  without.erase(without.begin() + 34, without.begin() + 42);
  without[23] = packet::kProtocolEsp;
  packet::store_be16(without.data() + 16, static_cast<std::uint16_t>(without.size() - 14));
  const RunResult result = run_everywhere("decrypt", kSaFile, {without});
  expect_frames(frames_of(result), {tcp(0x0A020001)});
}

TEST(Decrypt, each_sequence_number_counts_once) {
  const std::vector<Frame> good = encrypted(plain(3));
  const RunResult result = run_everywhere("decrypt", kSaFile, {good[0], good[0], good[2], good[1], good[1], good[2]});
  EXPECT_EQ(result.dropped("replay"), 3U);
  EXPECT_EQ(result.records.at(1), R"({"packet":1,"nf":"ipsec","verdict":"drop","reason":"replay","spi":4096,"seq":1})");
  EXPECT_EQ(survivors(result).size(), 3U);
}

TEST(Decrypt, reordering_is_forgiven_within_64_packets) {
  const std::vector<Frame> good = encrypted(plain(130));
  // number 100 first, then all others: 37 .. 99 are in its window, 1 .. 36 are not, 101 .. 130 move it on
  std::vector<Frame> frames{good[99]};
  for (std::size_t i = 0; i < good.size(); ++i) {
    if (i != 99) {
      frames.push_back(good[i]);
    }
  }
  const RunResult result = run_everywhere("decrypt", kSaFile, frames);
  EXPECT_EQ(result.dropped("replay"), 36U);
  EXPECT_EQ(survivors(result).size(), 130U - 36);
}

TEST(Decrypt, a_wide_window_loses_nothing_to_reordering_that_a_narrow_one_does_not_forgive) {
  // as from two queues of a router: every third packet is 100 packets late
  const std::vector<Frame> good = encrypted(plain(450));
  std::vector<Frame> frames;
  for (std::size_t i = 0; i < good.size() + 100; ++i) {
    if (i < good.size() && i % 3 != 0) {
      frames.push_back(good[i]);
    }
    if (i >= 100 && (i - 100) % 3 == 0) {
      frames.push_back(good[i - 100]);
    }
  }
  ASSERT_EQ(frames.size(), good.size());
  EXPECT_GT(run_everywhere("decrypt", kSaFile, frames).dropped("replay"), 100U);
  for (const char* window : {"replay_window: 128", "replay_window: 101", "replay_window: 4096"}) {
    EXPECT_EQ(survivors(run_everywhere("decrypt", with_sa_line(window), frames)).size(), good.size()) << window;
  }
  frames.insert(frames.end(), good.begin(), good.end());
  const RunResult again = run_everywhere("decrypt", with_sa_line("replay_window: 4096\n    esn: true"), frames);
  EXPECT_EQ(again.dropped("bad_icv"), frames.size()) << "not sent with these numbers";
  EXPECT_EQ(run_everywhere("decrypt", with_sa_line("replay_window: 4096"), frames).dropped("replay"), good.size());
}

TEST(Decrypt, a_forged_sequence_number_does_not_move_the_window) {
  const std::vector<Frame> good = encrypted(plain(2));
  Frame forged = good[0];
  packet::store_be32(forged.data() + 38, 1000000);
  const RunResult result = run_everywhere("decrypt", kSaFile, {forged, good[0], good[1]});
  EXPECT_EQ(result.dropped("bad_icv"), 1U);
  EXPECT_EQ(result.records.at(0),
            R"({"packet":0,"nf":"ipsec","verdict":"drop","reason":"bad_icv","spi":4096,"seq":1000000})");
  EXPECT_EQ(survivors(result).size(), 2U);
}

TEST(Decrypt, a_replayed_packet_with_a_bad_icv_is_called_bad_icv) {
  const std::vector<Frame> good = encrypted(plain(1));
  Frame bad = good[0];
  bad.back() ^= 1;
  const RunResult result = run_everywhere("decrypt", kSaFile, {good[0], bad});
  EXPECT_EQ(result.dropped("bad_icv"), 1U);
  EXPECT_EQ(result.dropped("replay"), 0U);
}

TEST(Decrypt, the_window_can_be_switched_off) {
  const std::vector<Frame> good = encrypted(plain(1));
  const RunResult result = run_everywhere("decrypt", with_sa_line("anti_replay: false"), {good[0], good[0]});
  EXPECT_EQ(survivors(result).size(), 2U);
}

TEST(Decrypt, fragments_of_esp_are_malformed) {
  const Frame esp = encrypted(plain(1)).at(0);
  const RunResult result = run_everywhere("decrypt", kSaFile, {with_fragment(esp, 0x2000), with_fragment(esp, 0x0010)});
  EXPECT_EQ(result.dropped("malformed"), 2U);
  EXPECT_EQ(result.records.at(0), R"({"packet":0,"nf":"ipsec","verdict":"drop","reason":"malformed"})");
}

TEST(Decrypt, every_wrong_size_is_malformed) {
  std::vector<Frame> frames;
  for (std::uint32_t size = 0; size < cipher::kTextOffset + 4 + cipher::kIcvBytes; ++size) {
    Frame frame = make_frame(packet::kProtocolUdp, 0xC0000201, kOuterTunnelEnd, 4500, 4500, std::string(size, '\x01'));
    if (size >= 4) {
      packet::store_be32(frame.data() + 42, 4096);
    }
    frames.push_back(frame);
  }
  const RunResult result = run_everywhere("decrypt", kSaFile, frames);
  EXPECT_EQ(result.dropped("malformed"), frames.size());
  EXPECT_EQ(result.records.at(8),
            R"({"packet":8,"nf":"ipsec","verdict":"drop","reason":"malformed","spi":4096,"seq":16843009})");
}

TEST(Decrypt, traffic_that_the_association_may_not_carry_is_dropped) {
  // the peer's selector is wider than ours
  std::string wide(kSaFile);
  wide.erase(wide.find("    selector"), wide.find("  - spi: 4097") - wide.find("    selector"));
  const std::vector<Frame> frames = encrypted({udp(0x0A020001), udp(0x0A030001)}, wide);
  const RunResult result = run_everywhere("decrypt", kSaFile, frames);
  EXPECT_EQ(result.records.at(1),
            R"({"packet":1,"nf":"ipsec","verdict":"drop","reason":"selector_mismatch","spi":4096,"seq":2})");
  EXPECT_EQ(survivors(result).size(), 1U);
}

/// A packet of the first association, with a good ICV, whose text is `text`.
Frame authentic(std::string const& text, std::uint32_t sequence) {
  Frame frame = nf::testing::make_datagram(packet::kProtocolEsp, 0xC0000201, kOuterTunnelEnd,
                                           Frame(cipher::kTextOffset + text.size() + cipher::kIcvBytes, 0));
  std::uint8_t* esp = frame.data() + 34;
  packet::store_be32(esp, 4096);
  packet::store_be32(esp + 4, sequence);
  packet::store_be32(esp + 12, sequence);
  std::copy(text.begin(), text.end(), esp + cipher::kTextOffset);
  Association association;
  std::iota(association.encryption_key.begin(), association.encryption_key.end(), std::uint8_t{0});
  std::iota(association.salt.begin(), association.salt.end(), std::uint8_t{0xF0});
  std::iota(association.authentication_key.begin(), association.authentication_key.end(), std::uint8_t{0x30});
  auto crypto = cipher::CryptoBurst::create();
  const cipher::SessionKeys keys = (*crypto)->expand(keys_of(association));
  (*crypto)->add(keys, esp, sequence, static_cast<std::uint32_t>(text.size()));
  EXPECT_TRUE((*crypto)->encrypt());
  return frame;
}

TEST(Decrypt, authentic_packets_that_are_no_tunnel_are_told_apart) {
  std::string dummy(40, 'd');
  dummy[38] = 0;
  dummy[39] = kNextHeaderDummy;
  std::string transport(40, 't');
  transport[38] = 0;
  transport[39] = 6;
  std::string long_pad(40, 'p');
  long_pad[38] = 39;
  long_pad[39] = kNextHeaderIpv4;
  std::string not_ipv4(40, '\x60');
  not_ipv4[38] = 0;
  not_ipv4[39] = kNextHeaderIpv4;
  const std::vector<Frame> frames{authentic(dummy, 1), authentic(transport, 2), authentic(long_pad, 3),
                                  authentic(not_ipv4, 4), authentic(not_ipv4, 4)};
  const RunResult result = run_everywhere("decrypt", kSaFile, frames);
  EXPECT_EQ(result.dropped("dummy"), 1U);
  EXPECT_EQ(result.dropped("malformed"), 3U);
  EXPECT_EQ(result.dropped("replay"), 1U);  // what is authentic moves the window, whatever is inside
}

TEST(Decrypt, random_bytes_behind_good_headers_never_survive) {
  std::mt19937 generator(11);
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < 600; ++i) {
    std::string payload(8 + generator() % 300, '\0');
    for (char& byte : payload) {
      byte = static_cast<char>(generator());
    }
    Frame frame = make_frame(packet::kProtocolUdp, 0xC0000201, kOuterTunnelEnd, 4500, 4500, payload);
    packet::store_be32(frame.data() + 42, 4096 + i % 2);
    if (i % 3 == 0) {
      frame.erase(frame.begin() + 34, frame.begin() + 42);
      frame[23] = packet::kProtocolEsp;
      packet::store_be16(frame.data() + 16, static_cast<std::uint16_t>(frame.size() - 14));
    }
    frames.push_back(frame);
  }
  const RunResult result = run_everywhere("decrypt", kSaFile, frames);
  EXPECT_TRUE(survivors(result).empty());
  EXPECT_EQ(result.dropped("malformed") + result.dropped("bad_icv"), frames.size());
}

TEST(Configuration, says_where_it_is_wrong) {
  struct Case {
    const char* direction;
    const char* more;
    const char* message;
  };
  const Case cases[] = {
      {"sideways", "", "test.yaml:1:12: 'direction' is 'sideways'; allowed: encrypt, decrypt"},
      {"encrypt", "mtu: 67", "test.yaml:3:6: 'mtu' is '67'; allowed: a whole number from 68 to 2034"},
      {"encrypt", "mtu: 2035", "'mtu' is '2035'"},
      {"decrypt", "mtu: 1500", "test.yaml:3:1: unknown key 'mtu'"},
      {"encrypt", "cipher: null", "test.yaml:3:1: unknown key 'cipher'"},
  };
  for (Case const& test : cases) {
    const auto nf = make(test.direction, kSaFile, test.more);
    ASSERT_FALSE(nf.ok()) << test.direction << ' ' << test.more;
    EXPECT_THAT(std::string(nf.status().message()), HasSubstr(test.message));
  }
}

TEST(Configuration, errors_of_the_sa_file_name_that_file) {
  const auto nf = make("encrypt", "associations: []");
  ASSERT_FALSE(nf.ok());
  EXPECT_THAT(std::string(nf.status().message()), HasSubstr("sa.yaml:1:15: 'associations' has 0 entries"));
}

TEST(Configuration, missing_sa_file_is_an_error_at_its_key) {
  const auto nf = nf::testing::make_nf(catena_nf_ipsec(), "{direction: encrypt, sa: nowhere.yaml}");
  ASSERT_FALSE(nf.ok());
  EXPECT_THAT(std::string(nf.status().message()), HasSubstr("'sa': no such file: "));
}

TEST(Configuration, start_report_names_direction_and_associations) {
  const auto nf = make("decrypt", kSaFile);
  ASSERT_TRUE(nf.ok()) << nf.status();
  EXPECT_THAT((*nf)->start_report(), ::testing::ElementsAre("decrypt, 2 associations, aes-128-ctr, hmac-sha1-96"));
}

/// What is warned of for tunnels with these selectors.
std::vector<std::string> warnings(std::string_view direction, std::vector<std::string> const& selectors) {
  std::string file = "associations:\n";
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    file += fmt::format(
        "  - spi: {0}\n    source: 192.0.2.1\n    destination: 198.51.100.1\n    encryption_key: \"{0:040x}\"\n"
        "    authentication_key: \"{0:040x}\"\n    selector: {1}\n",
        4096 + i, selectors[i]);
  }
  const auto nf = make(direction, file);
  EXPECT_TRUE(nf.ok()) << nf.status();
  std::vector<std::string> lines = nf.ok() ? (*nf)->start_report() : std::vector<std::string>();
  std::erase_if(lines, [](std::string const& line) { return !line.starts_with(nf::kWarning); });
  return lines;
}

TEST(Configuration, selectors_with_ports_are_warned_of_where_nobody_carries_the_rest) {
  const std::string web = "{destination: 10.2.0.0/16, protocol: tcp, destination_port: 443}";
  EXPECT_THAT(warnings("encrypt", {web}),
              ::testing::ElementsAre(::testing::AllOf(HasSubstr("the association with SPI 4096 has ports"),
                                                      HasSubstr("RFC 4301, section 7.2"), HasSubstr("`fragment`"))));
  EXPECT_THAT(warnings("decrypt", {web}), ::testing::ElementsAre(HasSubstr("`selector_mismatch`")));
  EXPECT_THAT(warnings("encrypt", {"{}", web, "{protocol: icmp}", "{source_port: 53}"}), ::testing::IsEmpty());
  EXPECT_THAT(warnings("encrypt", {"{source: 10.1.0.0/16}", web, "{destination_port: 1-9}"}),
              ::testing::ElementsAre(HasSubstr("the selector of 2 associations, the first with SPI 4097, has ports")));
  struct Case {
    const char* with_ports;
    const char* rest;
    bool is_carried;
  };
  const Case cases[] = {
      {"{protocol: tcp, destination_port: 443}", "{protocol: tcp, destination_port: opaque}", true},
      {"{protocol: tcp, destination_port: 443}", "{source_port: opaque}", true},
      {"{protocol: tcp, destination_port: 443}", "{protocol: tcp}", true},
      {"{protocol: tcp, destination_port: 443}", "{protocol: udp, destination_port: opaque}", false},
      {"{protocol: tcp, destination_port: 443}", "{protocol: tcp, source_port: 1-65535}", false},
      {"{source_port: 53}", "{protocol: udp}", false},
      {"{source: 10.1.0.0/16, source_port: 53}", "{source: 10.0.0.0/8}", true},
      {"{source: 10.1.0.0/16, source_port: 53}", "{source: 10.1.0.0/17}", false},
      {"{source: 10.1.0.0/16, source_port: 53}", "{destination: 10.0.0.0/8}", false},
      {"{source_port: 53}", "{source: 10.0.0.0/8}", false},
  };
  for (Case const& test : cases) {
    EXPECT_EQ(warnings("encrypt", {test.with_ports, test.rest}).empty(), test.is_carried)
        << test.with_ports << ' ' << test.rest;
    EXPECT_EQ(warnings("encrypt", {test.rest, test.with_ports}).empty(), test.is_carried)
        << test.rest << ' ' << test.with_ports;
  }
}

}  // namespace
}  // namespace catena::ipsec::testing
