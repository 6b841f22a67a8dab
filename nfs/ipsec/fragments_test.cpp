// SPDX-License-Identifier: Apache-2.0
// Parts of datagrams, and how long the packets are that a tunnel makes.
#include "ipsec_testing.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace catena::ipsec::testing {
namespace {

using nf::testing::make_frame;

constexpr std::uint32_t kTunnelEnd = 0xC6336401;
constexpr std::uint16_t kMore = 0x2000;

/// A tunnel with this selector, and one in UDP to another end for 10.9.0.0/16.
std::string associations(std::string_view selector) {
  return concat(R"(associations:
  - spi: 4096
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: 000102030405060708090a0b0c0d0e0ff0f1f2f3
    authentication_key: 303132333435363738393a3b3c3d3e3f40414243
    selector: )",
                selector, R"(
  - spi: 4097
    source: 192.0.2.1
    destination: 198.51.100.2
    encryption_key: a0a1a2a3a4a5a6a7a8a9aaabacadaeafdeadbeef
    authentication_key: 505152535455565758595a5b5c5d5e5f60616263
    selector: {destination: 10.9.0.0/16}
    udp_encapsulation: {}
)");
}

Frame with_fragment_word(Frame frame, std::uint16_t word) {
  packet::store_be16(frame.data() + 20, word);
  packet::store_be16(frame.data() + 24, 0);
  packet::store_be16(frame.data() + 24, packet::checksum_finish(packet::checksum_add(frame.data() + 14, 20)));
  return frame;
}
Frame tcp(std::uint32_t destination, std::uint16_t port, std::string_view payload = "hello") {
  return make_frame(packet::kProtocolTcp, 0x0A010001, destination, 1000, port, payload);
}
Frame udp(std::uint32_t destination, std::uint16_t port, std::string_view payload = "some hello") {
  return make_frame(packet::kProtocolUdp, 0x0A010001, destination, 1000, port, payload);
}

/// What became of each packet: the SPI, or the reason of its drop.
std::vector<std::string> fates(RunResult const& result) {
  std::vector<std::string> fates;
  for (std::string const& record : result.records) {
    const std::string key = record.find("reason") == std::string::npos ? "\"spi\":" : "\"reason\":\"";
    const std::size_t begin = record.find(key) + key.size();
    fates.push_back(record.substr(begin, record.find_first_of(",}\"", begin) - begin));
  }
  return fates;
}

TEST(Fragments, that_hide_the_ports_of_a_selector_are_dropped_for_that) {
  Frame first_without_ports = tcp(0x0A020001, 443);
  first_without_ports.resize(14 + 20 + 8);  // RFC 1858
  packet::store_be16(first_without_ports.data() + 16, 28);
  const RunResult result =
      run_everywhere("encrypt", associations("{destination: 10.2.0.0/16, protocol: tcp, destination_port: 443}"),
                     {with_fragment_word(tcp(0x0A020001, 443), kMore), with_fragment_word(tcp(0x0A020001, 80), kMore),
                      with_fragment_word(tcp(0x0A020001, 443), 5), with_fragment_word(tcp(0x0A030001, 443), 5),
                      with_fragment_word(udp(0x0A020001, 443), 5), with_fragment_word(first_without_ports, kMore)});
  EXPECT_THAT(fates(result), ::testing::ElementsAre("4096", "no_sa", "fragment", "no_sa", "no_sa", "fragment"));
}

TEST(Fragments, have_a_tunnel_of_their_own_where_ports_are_opaque) {
  const std::string sa_file = associations("{protocol: tcp, destination_port: opaque}");
  const std::vector<Frame> frames{tcp(0x0A020001, 443), with_fragment_word(tcp(0x0A020001, 443), 5),
                                  with_fragment_word(tcp(0x0A090001, 443), kMore)};
  const RunResult there = run_everywhere("encrypt", sa_file, frames);
  EXPECT_THAT(fates(there), ::testing::ElementsAre("no_sa", "4096", "4097"));
  const RunResult back = run_everywhere("decrypt", sa_file, survivors(there));
  expect_frames(survivors(back), {frames[1], frames[2]});
}

TEST(Fragments, of_esp_in_udp_are_malformed_whichever_part_they_are) {
  const Frame esp = frames_of(run_everywhere("encrypt", associations("{protocol: tcp}"),
                                             {udp(0x0A090001, 53, std::string(100, 'x'))}, "", {1}))
                        .at(0);
  ASSERT_EQ(esp[23], packet::kProtocolUdp);
  Frame short_first = esp;
  short_first.resize(14 + 20 + 4);
  packet::store_be16(short_first.data() + 16, 24);
  const std::vector<Frame> frames{
      with_fragment_word(esp, kMore),
      with_fragment_word(esp, kMore | 10),
      with_fragment_word(esp, 10),
      with_fragment_word(short_first, kMore),
  };
  const RunResult result = run_everywhere("decrypt", associations("{protocol: tcp}"), frames);
  EXPECT_EQ(result.dropped("malformed"), frames.size());
}

TEST(Fragments, of_udp_to_others_are_not_taken_for_esp) {
  const std::vector<Frame> frames{
      with_fragment_word(udp(kTunnelEnd, 4500), 10),  // that tunnel is not one in UDP
      with_fragment_word(udp(0x01020304, 4500), 10),  // no tunnel ends there
      with_fragment_word(tcp(0xC6336402, 4500), 10),  // not UDP
  };
  const RunResult result = run_everywhere("decrypt", associations("{protocol: icmp}"), frames);
  expect_frames(survivors(result), frames);
}

TEST(Mtu, is_that_of_ethernet_unless_said_otherwise) {
  // 28 bytes of headers, 2 of trailer, 36 in front and 12 behind: with 1410 of payload the text has 1440 bytes
  const std::vector<Frame> frames{udp(0x0A020001, 53, std::string(1410, 'x')),
                                  udp(0x0A020001, 53, std::string(1423, 'x'))};
  const RunResult fits = run_everywhere("encrypt", associations("{}"), frames, "mtu: 1500");
  const RunResult same = run_everywhere("encrypt", associations("{}"), frames);
  EXPECT_EQ(fates(fits), fates(same));
  EXPECT_THAT(fates(same), ::testing::ElementsAre("4096", "too_long"));
  const RunResult longer = run_everywhere("encrypt", associations("{}"), frames, "mtu: 2034");
  EXPECT_THAT(fates(longer), ::testing::ElementsAre("4096", "4096"));
}

TEST(Congestion, is_carried_out_of_the_tunnel_as_rfc_6040_says) {
  std::vector<Frame> plain;
  for (EcnCase const& test : kEcnTable) {
    plain.push_back(tcp(0x0A020001, 443));
    plain.back()[15] = static_cast<std::uint8_t>(0xB8 | test.inner);
    plain.back() = with_fragment_word(plain.back(), 0);  // the checksum
  }
  const std::string sa_file = associations("{protocol: tcp}");
  std::vector<Frame> sent = frames_of(run_everywhere("encrypt", sa_file, plain));
  for (std::size_t i = 0; i < kEcnTable.size(); ++i) {
    ASSERT_EQ(sent[i][15], 0xB8 | kEcnTable[i].inner);  // RFC 6040 section 4.1, normal mode
    sent[i][15] = static_cast<std::uint8_t>(0xB8 | kEcnTable[i].outer);
  }
  const RunResult result = run_everywhere("decrypt", sa_file, sent);
  EXPECT_EQ(result.dropped("congestion"), 1U);
  for (std::size_t i = 0; i < kEcnTable.size(); ++i) {
    nf::testing::PacketResult const& packet = result.packets[i];
    if (kEcnTable[i].leaving == kEcnDrop) {
      EXPECT_EQ(packet.verdict, packet::Verdict::kDrop);
      continue;
    }
    Frame expected = plain[i];
    expected[15] = static_cast<std::uint8_t>(0xB8 | kEcnTable[i].leaving);
    EXPECT_EQ(packet.frame, with_fragment_word(expected, 0)) << i;
  }
}

}  // namespace
}  // namespace catena::ipsec::testing
