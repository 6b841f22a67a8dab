// SPDX-License-Identifier: Apache-2.0
#include "io/tcp_run.hpp"

#include "io/test_support.hpp"

#include <catena/packet/headers.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace catena::io {
namespace {

using testing::Frame;
using testing::make_segment;
using testing::set_checksums;

constexpr std::uint32_t kPayload = 1000;
constexpr std::uint32_t kHeader = 14 + 20 + 32;
constexpr std::uint8_t kAck = 0x10;
constexpr std::uint8_t kAckPush = 0x18;

Frame segment(std::uint32_t number, std::uint32_t bytes = kPayload, std::uint8_t flags = kAck) {
  return make_segment(number * kPayload, static_cast<std::uint16_t>(0xFFFE + number), bytes, flags);
}

TEST(TcpRun, consecutive_segments_become_one_frame_whose_header_has_their_sum) {
  TcpRun run;
  const std::vector<Frame> frames{segment(0), segment(1), segment(2), segment(3, 10, kAckPush)};
  run.begin(frames[0]);
  for (std::size_t i = 1; i < frames.size(); ++i) {
    EXPECT_TRUE(run.add(frames[i])) << i;
  }
  EXPECT_EQ(run.frames(), 4U);
  EXPECT_EQ(run.segment_bytes(), kPayload);
  ASSERT_EQ(run.header_bytes(), kHeader);
  Frame header(kHeader);
  run.write_header(header.data());
  const std::uint32_t ip_bytes = kHeader - 14 + 3 * kPayload + 10;
  EXPECT_EQ(packet::load_be16(&header[16]), ip_bytes);
  EXPECT_EQ(packet::checksum_finish(packet::checksum_add(&header[14], 20)), 0U);
  EXPECT_EQ(header[47], kAckPush) << "the last one's";
  // the pseudo header's sum, which whoever adds the rest and inverts it makes the checksum
  const std::uint64_t pseudo = packet::checksum_add(&header[26], 8) + 6 + ip_bytes - 20;
  EXPECT_EQ(packet::load_be16(&header[50]), static_cast<std::uint16_t>(~packet::checksum_finish(pseudo)));
  Frame expected = frames[0];
  for (const std::size_t at : {16U, 17U, 24U, 25U, 47U, 50U, 51U}) {
    expected[at] = header[at];
  }
  expected.resize(kHeader);
  EXPECT_EQ(header, expected) << "all else is the first one's";
}

TEST(TcpRun, ends_at_a_push_and_at_a_shorter_segment) {
  TcpRun run;
  run.begin(segment(0, kPayload, kAckPush));
  EXPECT_FALSE(run.add(segment(1)));
  const Frame first = segment(0);
  run.begin(first);
  ASSERT_TRUE(run.add(segment(1, kPayload - 1)));
  EXPECT_FALSE(run.add(make_segment(2 * kPayload - 1, 0, 10, kAck)));
  run.begin(first);
  ASSERT_TRUE(run.add(segment(1, kPayload, kAckPush)));
  EXPECT_FALSE(run.add(segment(2)));
  EXPECT_EQ(run.frames(), 2U);
}

TEST(TcpRun, holds_what_an_ipv4_packet_can) {
  std::vector<Frame> frames;
  for (std::uint32_t i = 0; i < 70; ++i) {
    frames.push_back(segment(i));
  }
  TcpRun run;
  run.begin(frames[0]);
  std::uint32_t added = 1;
  while (run.add(frames[added])) {
    ++added;
  }
  EXPECT_EQ(added, (65535U - (kHeader - 14)) / kPayload);
}

/// Each changes the second of two segments that would follow each other, or both.
struct Change {
  std::string what;
  std::function<void(Frame&)> make;
  bool keeps_checksums = false;
};

TEST(TcpRun, takes_no_frame_that_cutting_would_not_give_again) {
  const auto poke = [](std::size_t at, std::uint8_t by) { return [at, by](Frame& frame) { frame[at] ^= by; }; };
  const std::vector<Change> changes{
      {"another source MAC", poke(6, 1)},
      {"another destination MAC", poke(0, 2)},
      {"no IPv4", poke(12, 0x80)},
      {"a VLAN tag",
       [](Frame& frame) {
         frame.insert(frame.begin() + 12, {0x81, 0, 0, 1});
       },
       true},
      {"IPv4 options", poke(14, 0x03)},
      {"another DSCP", poke(15, 0x04)},
      {"another ECN", poke(15, 0x03)},
      {"a gap in the identifications", poke(19, 0x01)},
      {"the flag of more fragments", poke(20, 0x20)},
      {"a fragment offset", poke(21, 1)},
      {"the reserved flag", poke(20, 0x80)},
      {"DF in one alone", poke(20, 0x40)},
      {"another TTL", poke(22, 1)},
      {"another protocol", poke(23, 0x11)},
      {"another source", poke(29, 1)},
      {"another destination", poke(33, 1)},
      {"another source port", poke(35, 1)},
      {"another destination port", poke(37, 1)},
      {"a gap in the sequence", poke(41, 1)},
      {"another acknowledgement", poke(45, 1)},
      {"reserved bits", poke(46, 1)},
      {"another length of options", poke(46, 0x10)},
      {"FIN", poke(47, 0x01)},
      {"SYN", poke(47, 0x02)},
      {"RST", poke(47, 0x04)},
      {"URG", poke(47, 0x20)},
      {"ECE", poke(47, 0x40)},
      {"CWR", poke(47, 0x80)},
      {"no ACK", poke(47, 0x10)},
      {"another window", poke(49, 1)},
      {"an urgent pointer", poke(53, 1)},
      {"another time stamp", poke(60, 1)},
      {"a longer payload",
       [](Frame& frame) {
         frame.push_back(0);
         packet::store_be16(&frame[16], static_cast<std::uint16_t>(frame.size() - 14));
       }},
      {"bytes after the packet", [](Frame& frame) { frame.push_back(0); }},
      {"no payload",
       [](Frame& frame) {
         frame.resize(kHeader);
         packet::store_be16(&frame[16], static_cast<std::uint16_t>(frame.size() - 14));
       }},
      {"a header cut short", [](Frame& frame) { frame.resize(50); }, true},
      {"a wrong IPv4 checksum", poke(24, 1), true},
      {"a wrong TCP checksum", poke(50, 1), true},
      {"a payload that its checksum is not of", poke(200, 1), true},
  };
  for (Change const& change : changes) {
    Frame second = segment(1);
    change.make(second);
    if (!change.keeps_checksums) {
      set_checksums(second);
    }
    TcpRun run;
    const Frame first = segment(0);
    run.begin(first);
    EXPECT_FALSE(run.add(second)) << change.what;
    EXPECT_TRUE(run.add(segment(1))) << "after " << change.what;
    EXPECT_EQ(run.frames(), 2U);
  }
}

TEST(TcpRun, no_frame_follows_one_that_the_kernel_would_put_right_or_that_is_no_segment) {
  for (const std::size_t at : {24U, 50U, 200U}) {
    Frame first = segment(0);
    first[at] ^= 1;
    TcpRun run;
    run.begin(first);
    EXPECT_FALSE(run.add(segment(1))) << "byte " << at;
  }
  const Frame other(60, 0x02);
  TcpRun run;
  run.begin(other);
  EXPECT_FALSE(run.add(other));
  EXPECT_EQ(run.frames(), 1U);
}

TEST(TcpRun, checksums_that_are_a_zero_are_left_as_they_are) {
  // of the two zeros of ones' complement a sender may have written either
  Frame second = segment(1);
  const std::uint16_t sum = packet::load_be16(&second[50]);
  const std::uint32_t word = packet::load_be16(&second[100]) + std::uint32_t{sum};  // moves the sum into the payload
  packet::store_be16(&second[100], static_cast<std::uint16_t>((word & 0xFFFFU) + (word >> 16)));
  set_checksums(second);
  ASSERT_TRUE(packet::load_be16(&second[50]) == 0 || packet::load_be16(&second[50]) == 0xFFFF);
  const Frame first = segment(0);
  TcpRun run;
  run.begin(first);
  EXPECT_FALSE(run.add(second));
}

}  // namespace
}  // namespace catena::io
