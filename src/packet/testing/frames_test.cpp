// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/testing/frames.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace catena::packet::testing {
namespace {

constexpr std::uint32_t kHost = 0x0A000001;
constexpr std::uint32_t kServer = 0xC6336407;
constexpr std::uint8_t kTcp = packet::kProtocolTcp;
constexpr std::uint8_t kUdp = packet::kProtocolUdp;

/// By packet/headers.hpp, which shares no code with the frames.
std::uint16_t checksum_of(Frame const& frame, std::size_t at, std::size_t bytes, std::uint64_t start = 0) {
  return packet::checksum_finish(packet::checksum_add(&frame[at], bytes, start));
}

TEST(Frames, the_checksum_is_that_of_the_example_in_rfc_1071) {
  constexpr std::array<std::uint8_t, 8> kBytes{0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7};
  EXPECT_EQ(internet_checksum(kBytes), static_cast<std::uint16_t>(~0xDDF2));
}

TEST(Frames, checksums_are_right_for_payloads_of_any_length) {
  for (std::size_t bytes = 0; bytes < 50; ++bytes) {
    const std::string payload(bytes, 'x');
    for (const std::uint8_t protocol : {kTcp, kUdp}) {
      const Frame frame = make_frame(protocol, kHost, kServer, 4000, 53, payload);
      const std::size_t l4_bytes = frame.size() - kL4;
      EXPECT_EQ(checksum_of(frame, kL3, 20), 0);
      EXPECT_EQ(checksum_of(frame, kL4, l4_bytes, packet::checksum_add(&frame[kL3 + 12], 8) + protocol + l4_bytes), 0);
      EXPECT_TRUE(has_right_checksums(frame));
    }
    const Frame echo = make_echo(kHost, kServer, 7, 1, payload);
    EXPECT_EQ(checksum_of(echo, kL3, 20), 0);
    EXPECT_EQ(checksum_of(echo, kL4, echo.size() - kL4), 0);
    EXPECT_TRUE(has_right_checksums(echo));
  }
}

TEST(Frames, a_wrong_byte_anywhere_is_a_wrong_checksum) {
  const Frame datagram = make_frame(kUdp, kHost, kServer, 4000, 53, "payload");
  for (Frame const& good : {datagram, make_segment(kHost, kServer, 4000, 80, kSyn, "text"),
                            make_echo(kHost, kServer, 7, 1, "text"), make_error(3, kServer, datagram)}) {
    ASSERT_TRUE(has_right_checksums(good));
    for (std::size_t at = kL3 + 12; at < good.size(); ++at) {
      Frame wrong = good;
      wrong[at] ^= 0x04;
      EXPECT_FALSE(has_right_checksums(wrong)) << at;
    }
  }
  Frame unchecked = datagram;
  unchecked[kL4 + 6] = unchecked[kL4 + 7] = 0;
  EXPECT_TRUE(has_right_checksums(unchecked));
}

TEST(Frames, are_parsed_as_what_they_were_built_as) {
  const auto is = [](Frame const& frame, packet::LayerFlag flag) {
    return (packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size())).flags & flag) != 0;
  };
  const Frame segment = make_segment(kHost, kServer, 4000, 80, kSyn | kAck, "text");
  EXPECT_TRUE(is(segment, packet::kTcp));
  EXPECT_EQ(segment[kL4 + 13], kSyn | kAck);
  EXPECT_TRUE(is(with_vlan(segment, 2), packet::kTcp));
  EXPECT_TRUE(is(with_options(segment, 10), packet::kTcp));
  EXPECT_TRUE(is(make_frame(kUdp, kHost, kServer, 1, 2, ""), packet::kUdp));
  EXPECT_TRUE(is(make_icmp(8, 0, kHost, kServer, 0, {}), packet::kIcmp));
  EXPECT_TRUE(is(with_fragment(segment, 0x0010), packet::kFragment));
  EXPECT_FALSE(is(ends_after(segment, 22), packet::kTruncated));
  EXPECT_EQ(ends_after(segment, 24), segment);
}

TEST(Frames, an_answer_goes_back_to_the_sender) {
  const Frame query = make_frame(kUdp, kHost, kServer, 4000, 53, "text");
  EXPECT_EQ(answer_to(query), make_frame(kUdp, kServer, kHost, 53, 4000, "text"));
  EXPECT_EQ(answer_to(make_echo(kHost, kServer, 7, 1, "text")), make_echo(kServer, kHost, 7, 1, "text", 0));
  EXPECT_EQ(with_ends(query, kServer, 1, kHost, 2), make_frame(kUdp, kServer, kHost, 1, 2, "text"));
}

TEST(Frames, two_fragments_make_the_datagram) {
  const Frame whole = make_frame(kUdp, kHost, kServer, 4000, 53, std::string(40, 'x'));
  const auto [first, second] = in_two(whole, 9, 24);
  Frame together(first.begin() + kL4, first.end());
  together.insert(together.end(), second.begin() + kL4, second.end());
  EXPECT_EQ(together, Frame(whole.begin() + kL4, whole.end()));
  EXPECT_EQ(packet::load_be32(&first[kL3 + 4]), 9U << 16 | 0x2000);
  EXPECT_EQ(packet::load_be32(&second[kL3 + 4]), 9U << 16 | 3);
  for (Frame const& part : {first, second}) {
    EXPECT_EQ(checksum_of(part, kL3, 20), 0);
    EXPECT_EQ(packet::load_be16(&part[kL3 + 2]), part.size() - kL3);
  }
}

TEST(Frames, an_error_quotes_what_it_is_about) {
  const Frame about = make_frame(kUdp, kHost, kServer, 4000, 53, "text");
  const Frame error = make_error(11, 0xC0000201, about, 12);
  EXPECT_EQ(source_of(error), 0xC0000201U);
  EXPECT_EQ(destination_of(error), kHost);
  EXPECT_EQ(Frame(error.begin() + kL4 + 8, error.end()), Frame(about.begin() + kL3, about.end()));
  EXPECT_EQ(make_error(11, 0xC0000201, about, 500), error) << "no more than there is";
  EXPECT_EQ(make_error(11, 0xC0000201, about).size(), error.size() - 4);
}

}  // namespace
}  // namespace catena::packet::testing
