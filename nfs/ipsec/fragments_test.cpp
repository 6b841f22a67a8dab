// SPDX-License-Identifier: Apache-2.0
// Parts of datagrams, and how long the packets are that a tunnel makes.
#include "ipsec_testing.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/fragments.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace catena::ipsec::testing {
namespace {

using nf::testing::ends_after;
using nf::testing::make_frame;
using nf::testing::with_header_checksum;
using nf::testing::with_tos;

constexpr std::uint32_t kFragmentTunnelEnd = 0xC6336401;
constexpr std::uint16_t kMore = 0x2000;

/// A tunnel with this selector, and one in UDP to another end for 10.9.0.0/16.
std::string fragment_associations(std::string_view selector) {
  return two_tunnels(selector, "{destination: 10.9.0.0/16}");
}

Frame tcp_segment(std::uint32_t destination, std::uint16_t port, std::string_view payload = "hello") {
  return make_frame(packet::kProtocolTcp, 0x0A010001, destination, 1000, port, payload);
}
Frame udp_datagram(std::uint32_t destination, std::uint16_t port, std::string_view payload = "some hello") {
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
  const Frame first_without_ports = ends_after(tcp_segment(0x0A020001, 443), 8);  // RFC 1858
  const RunResult result = run_everywhere(
      "encrypt", fragment_associations("{destination: 10.2.0.0/16, protocol: tcp, destination_port: 443}"),
      {with_fragment_word(tcp_segment(0x0A020001, 443), kMore), with_fragment_word(tcp_segment(0x0A020001, 80), kMore),
       with_fragment_word(tcp_segment(0x0A020001, 443), 5), with_fragment_word(tcp_segment(0x0A030001, 443), 5),
       with_fragment_word(udp_datagram(0x0A020001, 443), 5), with_fragment_word(first_without_ports, kMore)});
  EXPECT_THAT(fates(result), ::testing::ElementsAre("4096", "no_sa", "fragment", "no_sa", "no_sa", "fragment"));
}

TEST(Fragments, have_a_tunnel_of_their_own_where_ports_are_opaque) {
  const std::string sa_file = fragment_associations("{protocol: tcp, destination_port: opaque}");
  const std::vector<Frame> frames{tcp_segment(0x0A020001, 443), with_fragment_word(tcp_segment(0x0A020001, 443), 5),
                                  with_fragment_word(tcp_segment(0x0A090001, 443), kMore)};
  const RunResult there = run_everywhere("encrypt", sa_file, frames);
  EXPECT_THAT(fates(there), ::testing::ElementsAre("no_sa", "4096", "4097"));
  const RunResult back = run_everywhere("decrypt", sa_file, survivors(there));
  expect_frames(survivors(back), {frames[1], frames[2]});
}

TEST(Fragments, of_esp_in_udp_are_malformed_whichever_part_they_are) {
  const Frame esp = frames_of(run_everywhere("encrypt", fragment_associations("{protocol: tcp}"),
                                             {udp_datagram(0x0A090001, 53, std::string(100, 'x'))}, "", {1}))
                        .at(0);
  ASSERT_EQ(esp[23], packet::kProtocolUdp);
  const std::vector<Frame> frames{
      with_fragment_word(esp, kMore),
      with_fragment_word(esp, kMore | 10),
      with_fragment_word(esp, 10),
      with_fragment_word(ends_after(esp, 4), kMore),
  };
  const RunResult result = run_everywhere("decrypt", fragment_associations("{protocol: tcp}"), frames);
  EXPECT_EQ(result.dropped("malformed"), frames.size());
}

TEST(Fragments, of_udp_to_others_are_not_taken_for_esp) {
  const std::vector<Frame> frames{
      with_fragment_word(udp_datagram(kFragmentTunnelEnd, 4500), 10),  // that tunnel is not one in UDP
      with_fragment_word(udp_datagram(0x01020304, 4500), 10),          // no tunnel ends there
      with_fragment_word(tcp_segment(0xC6336402, 4500), 10),           // not UDP
  };
  const RunResult result = run_everywhere("decrypt", fragment_associations("{protocol: icmp}"), frames);
  expect_frames(survivors(result), frames);
}

/// What encrypt makes of one frame, with what the harness does not keep.
struct Made {
  Frame frame;
  packet::Verdict verdict;
  std::vector<Frame> leaving;  ///< as tx writes it
};
Made encrypt_one(Frame const& frame, std::string_view sa_file, std::string_view more) {
  auto nf = make("encrypt", sa_file, more);
  EXPECT_TRUE(nf.ok()) << nf.status();
  nf::testing::CpuNf instance(catena_nf_ipsec(), std::move(*nf), true);
  const std::vector<Frame> frames{frame};
  nf::testing::PacketStore store(frames);
  instance.process(store.all());
  const packet::Packet packet = store.all()[0];
  Made made{{packet.frame(), packet.frame() + packet.length()}, packet.verdict(), {}};
  const std::uint32_t count = packet::leaves_in(packet);
  if (count == 1) {
    made.leaving = {made.frame};
  }
  for (std::uint32_t i = 0; count > 1 && i < count; ++i) {
    const packet::Fragments fragments(packet);
    Frame part(fragments.max_bytes());
    part.resize(fragments.write(i, part.data()));
    made.leaving.push_back(part);
  }
  return made;
}

std::uint32_t datagram_bytes(Frame const& frame) { return packet::load_be16(frame.data() + 16); }

/// `selector` any, and `line` in the first association.
std::string with_line(std::string_view line) {
  std::string text = fragment_associations("{}");
  const std::size_t at = text.find("    selector");
  return text.insert(at, concat("    ", line, "\n"));
}

TEST(Mtu, longer_packets_leave_as_fragments_that_make_the_same_packet) {
  const Frame frame = udp_datagram(0x0A020001, 53, std::string(1700, 'x'));
  const Frame whole = encrypt_one(frame, fragment_associations("{}"), "mtu: 2034").frame;
  const Made made = encrypt_one(frame, fragment_associations("{}"), "");  // 1500
  EXPECT_EQ(made.verdict, packet::Verdict::kPass);
  EXPECT_EQ(made.frame, whole);
  ASSERT_EQ(made.leaving.size(), 2U);
  Frame together(whole.begin(), whole.begin() + 34);
  for (Frame const& part : made.leaving) {
    EXPECT_LE(datagram_bytes(part), 1500U);
    EXPECT_EQ((packet::load_be16(part.data() + 20) & 0x1FFFU) * 8, together.size() - 34);
    together.insert(together.end(), part.begin() + 34, part.end());
  }
  EXPECT_EQ(together, whole);
}

TEST(Mtu, the_sender_of_a_packet_that_may_not_be_cut_is_told_what_fits) {
  for (const std::uint32_t mtu : {256U, 1400U, 1499U, 1500U, 1501U, 1502U, 1503U}) {
    for (const bool in_udp : {false, true}) {
      const std::string more = concat("mtu: ", mtu);
      const std::string sa_file = in_udp ? with_line("udp_encapsulation: {}") : fragment_associations("{}");
      const Frame big = with_fragment_word(udp_datagram(0x0A020001, 53, std::string(1600, 'x')), 0x4000);
      const Made made = encrypt_one(big, sa_file, more);
      ASSERT_EQ(made.verdict, packet::Verdict::kReply);
      Frame const& reply = made.frame;
      EXPECT_TRUE(nf::testing::has_right_checksums(reply));
      EXPECT_EQ(packet::load_be32(reply.data() + 26), 0xC0000201U);  // the tunnel's source
      EXPECT_EQ(packet::load_be32(reply.data() + 30), 0x0A010001U);  // the packet's sender
      EXPECT_EQ(packet::load_be16(reply.data() + 34), 0x0304U);      // fragmentation needed and DF set
      EXPECT_TRUE(std::equal(reply.begin() + 42, reply.end(), big.begin() + 14));
      // what is said to fit does, and one byte more does not
      const std::uint32_t fits = packet::load_be16(reply.data() + 40);
      const Frame fitting = with_fragment_word(udp_datagram(0x0A020001, 53, std::string(fits - 28, 'x')), 0x4000);
      const Made sent = encrypt_one(fitting, sa_file, more);
      EXPECT_EQ(sent.verdict, packet::Verdict::kPass) << mtu;
      EXPECT_EQ(sent.leaving.size(), 1U);
      EXPECT_LE(datagram_bytes(sent.frame), mtu);
      const Frame longer = with_fragment_word(udp_datagram(0x0A020001, 53, std::string(fits - 27, 'x')), 0x4000);
      EXPECT_EQ(encrypt_one(longer, sa_file, more).verdict, packet::Verdict::kReply) << mtu;
    }
  }
}

TEST(Mtu, the_policy_of_the_association_decides_about_the_outer_packet) {
  const Frame may_be_cut = udp_datagram(0x0A020001, 53, std::string(1600, 'x'));
  const Frame may_not = with_fragment_word(may_be_cut, 0x4000);
  EXPECT_EQ(encrypt_one(may_not, with_line("df: clear"), "").leaving.size(), 2U);
  // its sender lets it be cut, so it would not listen to an error
  EXPECT_EQ(encrypt_one(may_be_cut, with_line("df: set"), "").verdict, packet::Verdict::kDrop);
  EXPECT_EQ(encrypt_one(may_not, with_line("df: set"), "").verdict, packet::Verdict::kReply);
}

TEST(Mtu, no_error_is_sent_about_an_error) {
  Frame error = with_fragment_word(udp_datagram(0x0A020001, 53, std::string(1600, 'x')), 0x4000);
  error[23] = packet::kProtocolIcmp;
  error[34] = 3;
  error = with_fragment_word(error, 0x4000);
  EXPECT_EQ(encrypt_one(error, fragment_associations("{}"), "").verdict, packet::Verdict::kDrop);
}

TEST(Mtu, is_the_same_on_every_device) {
  std::vector<Frame> frames;
  for (std::uint32_t size = 1380; size < 1440; ++size) {
    frames.push_back(udp_datagram(0x0A020001, 53, std::string(size, 'x')));
    frames.push_back(with_fragment_word(udp_datagram(0x0A090001, 53, std::string(size, 'x')), 0x4000));
  }
  const RunResult result = run_everywhere("encrypt", fragment_associations("{protocol: udp}"), frames);
  const auto count = [&result](packet::Verdict verdict) {
    return std::count_if(result.packets.begin(), result.packets.end(),
                         [verdict](nf::testing::PacketResult const& packet) { return packet.verdict == verdict; });
  };
  EXPECT_EQ(count(packet::Verdict::kDrop), 0);
  EXPECT_GT(count(packet::Verdict::kReply), 10);
  EXPECT_GT(count(packet::Verdict::kPass), 60);
}

TEST(Congestion, is_carried_out_of_the_tunnel_as_rfc_6040_says) {
  std::vector<Frame> plain;
  for (EcnCase const& test : kEcnTable) {
    const auto tos = static_cast<std::uint8_t>(0xB8 | test.inner);
    plain.push_back(with_header_checksum(with_tos(tcp_segment(0x0A020001, 443), tos)));
  }
  const std::string sa_file = fragment_associations("{protocol: tcp}");
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
    const auto tos = static_cast<std::uint8_t>(0xB8 | kEcnTable[i].leaving);
    EXPECT_EQ(packet.frame, with_header_checksum(with_tos(plain[i], tos))) << i;
  }
}

}  // namespace
}  // namespace catena::ipsec::testing
