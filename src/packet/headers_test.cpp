// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/headers.hpp>

#include <gtest/gtest.h>

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
  return parse(copy.get(), static_cast<std::uint32_t>(frame.size()));
}

TEST(Parse, finds_udp_behind_options_and_two_vlan_tags) {
  const Layers layers = parse_exact(ipv4_frame(kProtocolUdp, udp(5, 13), 3, 2));
  EXPECT_EQ(layers.flags, kIpv4 | kUdp | kPorts | kVlan);
  EXPECT_EQ(layers.l3, 22);
  EXPECT_EQ(layers.l4, 22 + 32);
  EXPECT_EQ(layers.payload, 22 + 32 + 8);
  EXPECT_EQ(layers.payload_length, 5);
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
  EXPECT_EQ(parse_exact(ipv4_frame(kProtocolUdp, udp(0, 8), 0, 3)).flags, kVlan);
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
  std::uint8_t flags;
};

class LyingLengths : public testing::TestWithParam<LyingCase> {};

TEST_P(LyingLengths, lose_the_flag_of_the_header_that_lies) {
  Bytes frame = ipv4_frame(kProtocolUdp, udp(4, 12));
  frame[14 + GetParam().at] = GetParam().value;
  EXPECT_EQ(parse_exact(frame).flags, GetParam().flags);
}

INSTANTIATE_TEST_SUITE_P(All, LyingLengths,
                         testing::Values(LyingCase{"version 6", 0, 0x65, 0},
                                         LyingCase{"header of 16 bytes", 0, 0x44, 0},
                                         LyingCase{"header longer than the datagram", 0, 0x4F, 0},
                                         LyingCase{"total length beyond the frame", 2, 0xFF, 0},
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
      EXPECT_EQ(layers.flags & kIpv4, 0) << "the total length is beyond a frame cut to " << length;
    }
    EXPECT_EQ(parse_exact(whole).flags & kIpv4, kIpv4);
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
      ASSERT_LE(layers.l3 + layers.l3_length, frame.size());
      ASSERT_LE(layers.payload + layers.payload_length, layers.l3 + layers.l3_length);
      ASSERT_LE(layers.l4, layers.payload);
    } else {
      ASSERT_EQ(layers.flags & ~kVlan, 0);
    }
  }
}

// RFC 1071, section 3: the words 0001 f203 f4f5 f6f7 sum to ddf2 (folded).
TEST(Checksum, agrees_with_the_example_of_rfc_1071) {
  const Bytes bytes{0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7};
  EXPECT_EQ(checksum_finish(checksum_add(bytes.data(), bytes.size())), static_cast<std::uint16_t>(~0xDDF2));
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
