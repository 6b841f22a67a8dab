// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/headers.hpp>

#include <gtest/gtest.h>
#include <catena/packet/rewrite.hpp>

#include <array>
#include <initializer_list>
#include <memory>
#include <random>
#include <vector>

namespace catena::packet {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Ethernet, `tags` VLAN tags, IPv4 with `option_words` words of options, and `l4` as its payload.
Bytes ipv4_frame(std::uint8_t protocol, Bytes const& l4, unsigned option_words = 0, unsigned tags = 0,
                 std::uint16_t fragment = 0) {
  Bytes frame(12, 0x02);
  for (unsigned tag = 0; tag < tags; ++tag) {
    frame.insert(frame.end(), {0x81, 0x00, 0x00, static_cast<std::uint8_t>(tag + 1)});
  }
  frame.insert(frame.end(), {0x08, 0x00});
  const auto header = static_cast<std::uint8_t>(20 + 4 * option_words);
  const auto total = static_cast<std::uint16_t>(header + l4.size());
  frame.insert(frame.end(), {static_cast<std::uint8_t>(0x40 | (header / 4)),
                             0,
                             static_cast<std::uint8_t>(total >> 8),
                             static_cast<std::uint8_t>(total),
                             0,
                             1,
                             static_cast<std::uint8_t>(fragment >> 8),
                             static_cast<std::uint8_t>(fragment),
                             64,
                             protocol,
                             0,
                             0,
                             10,
                             0,
                             0,
                             1,
                             10,
                             0,
                             0,
                             2});
  frame.insert(frame.end(), 4 * option_words, 1);
  frame.insert(frame.end(), l4.begin(), l4.end());
  return frame;
}

Bytes udp(std::size_t payload, std::uint16_t length_field) {
  Bytes header{
      0x12, 0x34, 0x00, 0x35, static_cast<std::uint8_t>(length_field >> 8), static_cast<std::uint8_t>(length_field),
      0,    0};
  header.resize(8 + payload, 0xAA);
  return header;
}

Bytes tcp(std::uint8_t data_offset_words, std::size_t payload) {
  Bytes header(20, 0);
  header[12] = static_cast<std::uint8_t>(data_offset_words << 4);
  header.resize(std::max<std::size_t>(20, data_offset_words * 4U) + payload, 0xBB);
  return header;
}

Layers parse_exact(Bytes const& frame) {
  // an allocation of exactly this size lets the address sanitizer see any byte read past it
  const auto copy = std::make_unique<std::uint8_t[]>(frame.size());
  std::copy(frame.begin(), frame.end(), copy.get());
  const Layers layers = parse(copy.get(), static_cast<std::uint32_t>(frame.size()));
  shown_ports(copy.get(), layers);
  return layers;
}

TEST(Parse, finds_udp_behind_options_and_two_vlan_tags) {
  const Layers layers = parse_exact(ipv4_frame(kProtocolUdp, udp(5, 13), 3, 2));
  EXPECT_EQ(layers.flags, kIpv4 | kUdp | kPorts);
  EXPECT_EQ(layers.l3, 22);
  EXPECT_EQ(layers.l4, 22 + 32);
  EXPECT_EQ(layers.payload, 22 + 32 + 8);
  EXPECT_EQ(layers.payload_length, 5);
}

TEST(Parse, a_datagram_longer_than_its_udp_payload_has_a_surplus) {
  const Bytes whole = ipv4_frame(kProtocolUdp, udp(20, 13));
  for (const std::size_t length : {whole.size(), whole.size() - 5, whole.size() - 15, whole.size() - 16}) {
    const Bytes frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const Layers layers = parse_exact(frame);
    const bool ends_in_payload = length <= 34 + 13;
    EXPECT_EQ(layers.flags & kSurplus, ends_in_payload ? 0 : kSurplus) << length;
    EXPECT_EQ(layers.payload_length, ends_in_payload ? length - 42 : 5) << length;
    EXPECT_EQ(l3_length(frame.data(), static_cast<std::uint32_t>(length), layers), length - 14);
  }
}

TEST(Parse, ethernet_padding_is_not_payload) {
  Bytes frame = ipv4_frame(kProtocolTcp, tcp(5, 3));
  frame.resize(frame.size() + 6, 0);
  EXPECT_EQ(parse_exact(frame).payload_length, 3);
}

TEST(Parse, longest_headers_fit_the_offsets) {
  const Layers layers = parse_exact(ipv4_frame(kProtocolTcp, tcp(15, 1), 10, 2));
  EXPECT_EQ(layers.flags & kTcp, kTcp);
  EXPECT_EQ(layers.payload, 22 + 60 + 60);
}

TEST(Parse, three_vlan_tags_are_not_looked_through) {
  EXPECT_EQ(parse_exact(ipv4_frame(kProtocolUdp, udp(0, 8), 0, 3)).flags, 0);
}

/// As tshark 4.0.17 and, but for 0x9200, Suricata 7.0.10 read them.
TEST(Parse, tags_of_every_type_are_looked_through) {
  constexpr std::uint16_t kTypes[] = {0x8100, 0x88A8, 0x9100, 0x9200};
  for (const std::uint16_t outer : kTypes) {
    Bytes one = ipv4_frame(kProtocolUdp, udp(5, 13), 0, 1);
    store_be16(&one[12], outer);
    EXPECT_EQ(parse_exact(one).flags, kIpv4 | kUdp | kPorts) << std::hex << outer;
    for (const std::uint16_t inner : kTypes) {
      Bytes two = ipv4_frame(kProtocolUdp, udp(5, 13), 0, 2);
      store_be16(&two[12], outer);
      store_be16(&two[16], inner);
      EXPECT_EQ(parse_exact(two).l3, 22) << std::hex << outer << " " << inner;
      Bytes arp(60, 0);
      store_be16(&arp[12], outer);
      store_be16(&arp[16], inner);
      const Bytes request{0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};
      std::copy(request.begin(), request.end(), arp.begin() + 20);
      EXPECT_TRUE(is_link_local(parse_exact(arp).flags)) << std::hex << outer << " " << inner;
    }
  }
  for (const std::uint16_t no_tag : std::initializer_list<std::uint16_t>{0x8101, 0x9300, 0x88E7, 0x9101}) {
    Bytes frame = ipv4_frame(kProtocolUdp, udp(5, 13), 0, 1);
    store_be16(&frame[12], no_tag);
    EXPECT_EQ(parse_exact(frame).flags, 0) << std::hex << no_tag;
  }
}

/// By the numbers of IANA.
TEST(Parse, tunnels_have_a_number) {
  const auto of_protocol = [](std::uint8_t protocol, std::uint16_t fragment = 0) {
    return tunnel_of(parse_exact(ipv4_frame(protocol, Bytes(24, 0), 0, 1, fragment)).flags);
  };
  EXPECT_EQ(of_protocol(47), Tunnel::kGre);
  EXPECT_EQ(of_protocol(4), Tunnel::kIpip);
  EXPECT_EQ(of_protocol(41), Tunnel::k6in4);
  EXPECT_EQ(of_protocol(41, 0x2000), Tunnel::k6in4) << "first fragment";
  EXPECT_EQ(of_protocol(41, 0x0001), Tunnel::k6in4) << "a later fragment";
  for (const std::uint8_t protocol : std::initializer_list<std::uint8_t>{0, 1, 2, 6, 17, 50, 51, 132, 255}) {
    EXPECT_EQ(of_protocol(protocol), Tunnel::kNone) << int{protocol};
  }
  const auto to_port = [](std::uint16_t port, std::uint16_t fragment = 0) {
    Bytes header = udp(20, 28);
    store_be16(&header[2], port);
    return tunnel_of(parse_exact(ipv4_frame(kProtocolUdp, header, 2, 0, fragment)).flags);
  };
  EXPECT_EQ(to_port(4789), Tunnel::kVxlan);
  EXPECT_EQ(to_port(4789, 0x2000), Tunnel::kVxlan);
  EXPECT_EQ(to_port(4789, 0x0001), Tunnel::kNone) << "a later fragment shows no ports";
  EXPECT_EQ(to_port(6081), Tunnel::kGeneve);
  EXPECT_EQ(to_port(3544), Tunnel::kTeredo);
  EXPECT_EQ(to_port(4788), Tunnel::kNone);
  Bytes tcp_header = tcp(5, 3);
  store_be16(&tcp_header[2], 4789);
  EXPECT_EQ(tunnel_of(parse_exact(ipv4_frame(kProtocolTcp, tcp_header)).flags), Tunnel::kNone);
}

TEST(Parse, a_later_fragment_has_no_ports) {
  const Layers layers = parse_exact(ipv4_frame(kProtocolUdp, udp(8, 16), 0, 0, 0x0001));
  EXPECT_EQ(layers.flags, kIpv4 | kFragment);
  EXPECT_EQ(layers.payload_length, 16);
}

TEST(Parse, a_first_fragment_keeps_its_ports) {
  const Layers layers = parse_exact(ipv4_frame(kProtocolUdp, udp(8, 4000), 0, 0, 0x2000));
  EXPECT_EQ(layers.flags, kIpv4 | kFragment | kUdp | kPorts);
  EXPECT_EQ(layers.payload_length, 8);
}

struct LyingCase {
  const char* description;
  std::size_t at;  // from the start of the IPv4 header
  std::uint8_t value;
  std::uint16_t flags;
};

class LyingLengths : public ::testing::TestWithParam<LyingCase> {};

TEST_P(LyingLengths, lose_the_flag_of_the_header_that_lies) {
  Bytes frame = ipv4_frame(kProtocolUdp, udp(4, 12));
  frame[14 + GetParam().at] = GetParam().value;
  EXPECT_EQ(parse_exact(frame).flags, GetParam().flags);
}

INSTANTIATE_TEST_SUITE_P(
    All, LyingLengths,
    ::testing::Values(LyingCase{"version 6", 0, 0x65, 0}, LyingCase{"header of 16 bytes", 0, 0x44, 0},
                      LyingCase{"header longer than the datagram", 0, 0x4F, 0},
                      LyingCase{"total length beyond the frame", 2, 0xFF, kIpv4 | kUdp | kPorts | kTruncated},
                      LyingCase{"total length below the header", 3, 19, 0},
                      LyingCase{"UDP length beyond the datagram", 24, 0x10, kIpv4},
                      LyingCase{"UDP length below its header", 25, 7, kIpv4}),
    [](auto const& test) {
      std::string name = test.param.description;
      for (char& c : name) {
        c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      }
      return name;
    });

TEST(Parse, reads_nothing_past_a_frame_cut_at_any_length) {
  for (Bytes const& whole : {ipv4_frame(kProtocolTcp, tcp(8, 20), 4, 2), ipv4_frame(kProtocolUdp, udp(20, 28)),
                             ipv4_frame(kProtocolIcmp, Bytes(12, 8)), ipv4_frame(kProtocolEsp, Bytes(40, 1))}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const Layers layers = parse_exact(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
      const std::size_t tags = whole[12] == 0x81 ? 2 : 0;
      const std::size_t l3 = kEthernetBytes + 4 * tags;
      const bool has_header = length >= l3 + (whole[l3] & 0x0FU) * 4U;
      EXPECT_EQ(layers.flags & (kIpv4 | kTruncated), has_header ? kIpv4 | kTruncated : 0) << "cut to " << length;
      EXPECT_LE(layers.payload + layers.payload_length, length);
    }
    EXPECT_EQ(parse_exact(whole).flags & (kIpv4 | kTruncated), kIpv4);
  }
}

TEST(Parse, offsets_stay_inside_random_frames) {
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i) {
    Bytes frame =
        ipv4_frame(static_cast<std::uint8_t>(random()), Bytes(random() % 64, static_cast<std::uint8_t>(random())),
                   static_cast<unsigned>(random() % 11), static_cast<unsigned>(random() % 3));
    for (auto flips = random() % 4; flips > 0; --flips) {
      frame[random() % frame.size()] = static_cast<std::uint8_t>(random());
    }
    frame.resize(random() % (frame.size() + 1));
    const Layers layers = parse_exact(frame);
    if ((layers.flags & kIpv4) != 0) {
      const std::uint32_t datagram = l3_length(frame.data(), static_cast<std::uint32_t>(frame.size()), layers);
      ASSERT_EQ(layers.family, AddressFamily::kIpv4);
      ASSERT_EQ(datagram, std::min<std::size_t>(load_be16(&frame[layers.l3 + 2U]), frame.size() - layers.l3));
      ASSERT_LE(layers.payload + layers.payload_length, layers.l3 + datagram);
      ASSERT_LE(layers.l4, layers.payload);
    } else {
      ASSERT_EQ(layers.flags & ~kLinkLocal, 0);
      ASSERT_EQ(layers.family, AddressFamily::kNone);
    }
  }
}

Bytes cut_to(Bytes frame, std::size_t length) {
  frame.resize(length);
  return frame;
}

TEST(Parse, headers_of_a_truncated_frame_count_where_they_are_there) {
  const std::uint16_t ipv4 = kIpv4 | kTruncated;
  // 20 bytes of TCP header, 12 of options, 40 of payload
  const Bytes frame = ipv4_frame(kProtocolTcp, tcp(8, 40));
  const Bytes cut = cut_to(frame, 34 + 32 + 5);
  const Layers payload_cut = parse_exact(cut);
  EXPECT_EQ(payload_cut.flags, ipv4 | kTcp | kPorts);
  EXPECT_EQ(parse_exact(cut_to(frame, 34 + 32)).flags, ipv4 | kTcp | kPorts) << "nothing of the header is missing";
  EXPECT_EQ(parse_exact(cut_to(frame, 34 + 31)).flags, ipv4 | kTcp | kPorts | kSplitHeader);
  EXPECT_EQ(payload_cut.payload, 34 + 32);
  EXPECT_EQ(payload_cut.payload_length, 5);
  EXPECT_EQ(l3_length(cut.data(), static_cast<std::uint32_t>(cut.size()), payload_cut), 20 + 32 + 5);
  const Layers options_cut = parse_exact(cut_to(frame, 34 + 25));
  EXPECT_EQ(options_cut.flags, ipv4 | kTcp | kPorts | kSplitHeader) << "its first 20 bytes alone";
  EXPECT_EQ(options_cut.payload, 34 + 25);
  EXPECT_EQ(options_cut.payload_length, 0);
  EXPECT_EQ(parse_exact(cut_to(frame, 34 + 19)).flags, ipv4);
  const Bytes datagram = ipv4_frame(kProtocolUdp, udp(40, 48));
  EXPECT_EQ(parse_exact(cut_to(datagram, 34 + 8)).flags, ipv4 | kUdp | kPorts);
  EXPECT_EQ(parse_exact(cut_to(datagram, 34 + 10)).payload_length, 2);
  EXPECT_EQ(parse_exact(cut_to(datagram, 34 + 7)).flags, ipv4);
  // a length that lies is no better where the frame is cut
  EXPECT_EQ(parse_exact(cut_to(ipv4_frame(kProtocolUdp, udp(40, 49)), 34 + 8)).flags, ipv4);
}

/// RFC 1858 section 3, RFC 3128.
TEST(Parse, fragments_that_split_a_transport_header_are_told) {
  constexpr std::uint16_t kMore = 0x2000;
  constexpr std::uint8_t kSplit = kIpv4 | kFragment | kSplitHeader;
  constexpr std::uint8_t kFine = kIpv4 | kFragment;
  const Bytes options = tcp(14, 8);  // a header of 56 bytes
  const auto first = [&](std::uint8_t protocol, Bytes const& l4, std::size_t bytes) {
    return parse_exact(ipv4_frame(protocol, cut_to(l4, bytes), 0, 0, kMore)).flags;
  };
  EXPECT_EQ(first(kProtocolTcp, options, 8), kSplit);
  EXPECT_EQ(first(kProtocolTcp, options, 16), kSplit);
  EXPECT_EQ(first(kProtocolTcp, options, 32), kSplit);
  EXPECT_EQ(first(kProtocolTcp, options, 56), kFine | kTcp | kPorts);
  EXPECT_EQ(first(kProtocolUdp, udp(8, 4000), 4), kSplit);
  EXPECT_EQ(first(kProtocolUdp, udp(8, 4000), 8), kFine | kUdp | kPorts);
  EXPECT_EQ(first(kProtocolIcmp, Bytes(16, 8), 4), kSplit);
  EXPECT_EQ(first(kProtocolIcmp, Bytes(16, 8), 8), kFine | kIcmp);
  EXPECT_EQ(first(kProtocolEsp, Bytes(16, 8), 4), kFine) << "of other protocols nothing is known";
  for (const std::uint16_t more : {std::uint16_t{0}, kMore}) {
    const auto later = [&](std::uint8_t protocol, unsigned offset) {
      return parse_exact(ipv4_frame(protocol, Bytes(16, 0), 0, 0, static_cast<std::uint16_t>(more | offset))).flags;
    };
    EXPECT_EQ(later(kProtocolTcp, 1), kSplit) << "it can overwrite the flags of the first part";
    EXPECT_EQ(later(kProtocolTcp, 2), kFine);
    EXPECT_EQ(later(kProtocolUdp, 1), kFine) << "a UDP header ends there";
  }
  EXPECT_EQ(parse_exact(ipv4_frame(kProtocolTcp, cut_to(options, 8))).flags, kIpv4) << "no fragment";
}

/// A frame to `destination` with these bytes from the EtherType on, padded to 60 bytes.
Bytes frame_to(Bytes const& destination, Bytes const& rest) {
  Bytes frame = destination;
  frame.insert(frame.end(), {2, 0, 0, 0, 0, 1});
  frame.insert(frame.end(), rest.begin(), rest.end());
  frame.resize(60);
  return frame;
}

TEST(Parse, link_local_control_frames_are_told_from_those_that_carry_something) {
  const Bytes reserved{0x01, 0x80, 0xC2, 0, 0, 0x0E};
  const Bytes anybody(6, 0xFF);
  const Bytes arp{0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};
  const Bytes bpdu{0, 38, 0x42, 0x42, 0x03};
  struct Case {
    const char* name;
    Bytes frame;
    bool is_link_local;
  };
  const auto tagged = [](Bytes frame, int tags) {
    for (; tags > 0; --tags) {
      frame.insert(frame.begin() + 12, {0x81, 0x00, 0x00, 0x07});
    }
    return frame;
  };
  for (Case const& tested : std::vector<Case>{
           {"ARP", frame_to(anybody, arp), true},
           {"ARP in a VLAN", tagged(frame_to(anybody, arp), 2), true},
           {"ARP behind three tags", tagged(frame_to(anybody, arp), 3), false},
           {"ARP cut short", cut_to(frame_to(anybody, arp), 14 + 27), false},
           {"ARP for another protocol", frame_to(anybody, {0x08, 0x06, 0, 1, 0x86, 0xDD, 6, 16, 0, 1}), false},
           {"ARP for another hardware", frame_to(anybody, {0x08, 0x06, 0, 6, 8, 0, 8, 4, 0, 1}), false},
           {"LLDP", frame_to(reserved, {0x88, 0xCC}), true},
           {"LLDP to somebody", frame_to({2, 0, 0, 0, 0, 2}, {0x88, 0xCC}), false},
           {"LACP", frame_to({0x01, 0x80, 0xC2, 0, 0, 2}, {0x88, 0x09}), true},
           {"pause", frame_to({0x01, 0x80, 0xC2, 0, 0, 1}, {0x88, 0x08}), true},
           {"EAPOL", frame_to({0x01, 0x80, 0xC2, 0, 0, 3}, {0x88, 0x8E}), true},
           {"spanning tree", frame_to({0x01, 0x80, 0xC2, 0, 0, 0}, bpdu), true},
           {"past the reserved addresses", frame_to({0x01, 0x80, 0xC2, 0, 0, 0x10}, bpdu), false},
           {"another LLC", frame_to(reserved, {0, 38, 0xE0, 0xE0, 0x03}), false},
           {"IPv6 to a reserved address", frame_to(reserved, {0x86, 0xDD, 0x60}), false},
           {"IPv6 in SNAP to a reserved address", frame_to(reserved, {0, 46, 0xAA, 0xAA, 3, 0, 0, 0, 0x86, 0xDD}),
            false},
           {"MPLS to a reserved address", frame_to(reserved, {0x88, 0x47}), false},
           {"IPv4 to a reserved address that lies", frame_to(reserved, {0x08, 0x00, 0x44}), false},
           {"CDP", frame_to({0x01, 0, 0x0C, 0xCC, 0xCC, 0xCC}, {0, 46, 0xAA, 0xAA, 3, 0, 0, 0x0C, 0x20, 0}), true},
           {"PVST+", frame_to({0x01, 0, 0x0C, 0xCC, 0xCC, 0xCD}, {0, 46, 0xAA, 0xAA, 3, 0, 0, 0x0C, 1, 0x0B}), true},
           {"CDP to somebody", frame_to(anybody, {0, 46, 0xAA, 0xAA, 3, 0, 0, 0x0C, 0x20, 0}), false},
           {"IPv6 in SNAP to CDP's address",
            frame_to({0x01, 0, 0x0C, 0xCC, 0xCC, 0xCC}, {0, 46, 0xAA, 0xAA, 3, 0, 0, 0, 0x86, 0xDD}), false},
           {"IPv6 to CDP's address", frame_to({0x01, 0, 0x0C, 0xCC, 0xCC, 0xCC}, {0x86, 0xDD, 0x60}), false},
           {"IPv6", frame_to(anybody, {0x86, 0xDD, 0x60}), false},
           {"nothing behind the addresses", cut_to(reserved, 12), false},
           {"an EtherType and nothing else", cut_to(frame_to(anybody, arp), 14), false}}) {
    const Layers layers = parse_exact(tested.frame);
    EXPECT_EQ(is_link_local(layers.flags), tested.is_link_local) << tested.name;
    EXPECT_EQ(layers.flags & ~kLinkLocal, 0) << tested.name;
  }
  Bytes datagram = ipv4_frame(kProtocolUdp, udp(8, 16));
  std::copy(reserved.begin(), reserved.end(), datagram.begin());
  EXPECT_EQ(parse_exact(datagram).flags, kIpv4 | kUdp | kPorts);
}

// RFC 1071, section 3: the words 0001 f203 f4f5 f6f7 sum to ddf2 (folded).
TEST(Checksum, agrees_with_the_example_of_rfc_1071) {
  const Bytes bytes{0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7};
  EXPECT_EQ(checksum_finish(checksum_add(bytes.data(), bytes.size())), static_cast<std::uint16_t>(~0xDDF2));
}

TEST(Checksum, corrected_after_fields_of_both_sizes_is_that_of_the_new_bytes) {
  std::mt19937 engine(3);
  const auto word = [&engine] {
    constexpr std::array<std::uint16_t, 4> kEdges{0x0000, 0xFFFF, 0x0001, 0xFFFE};
    return engine() % 2 == 0 ? kEdges[engine() % 4] : static_cast<std::uint16_t>(engine());
  };
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes(12);
    for (std::size_t i = 0; i < 10; i += 2) {
      store_be16(&bytes[i], word());
    }
    bytes[0] |= 1;  // of all zeros there are two checksums
    store_be16(&bytes[10], checksum_finish(checksum_add(bytes.data(), 10)));
    FieldWriter writer;
    writer.put32(&bytes[2], std::uint32_t{word()} << 16 | word());
    writer.put16(&bytes[6], word());
    writer.correct(&bytes[10]);
    ASSERT_EQ(load_be16(&bytes[10]), checksum_finish(checksum_add(bytes.data(), 10))) << "round " << round;
  }
}

// RFC 1624, section 4: checksum DD2F, a word changes from 5555 to 3285, the new checksum is 0000.
TEST(Checksum, update_agrees_with_the_example_of_rfc_1624) {
  EXPECT_EQ(checksum_update(0xDD2F, 0x5555, 0x3285), 0x0000);
}

TEST(Checksum, update_equals_a_new_sum) {
  std::mt19937 random(2);
  for (int i = 0; i < 100'000; ++i) {
    Bytes header(20);
    for (auto& byte : header) {
      byte = static_cast<std::uint8_t>(random());
    }
    store_be16(header.data() + 10, 0);
    const std::uint16_t before = checksum_finish(checksum_add(header.data(), 20));
    const std::uint16_t old_word = load_be16(header.data() + 8);
    const auto new_word = static_cast<std::uint16_t>(random());
    store_be16(header.data() + 8, new_word);
    ASSERT_EQ(checksum_update(before, old_word, new_word), checksum_finish(checksum_add(header.data(), 20)));
  }
}

TEST(Checksum, odd_length_is_padded_with_zero) {
  const Bytes odd{1, 2, 3};
  const Bytes even{1, 2, 3, 0};
  EXPECT_EQ(checksum_add(odd.data(), 3), checksum_add(even.data(), 4));
}

}  // namespace
}  // namespace catena::packet
