// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/fragments.hpp>

#include "packet/testing/one_packet.hpp"

#include <gtest/gtest.h>

#include <random>

namespace catena::packet {
namespace {

using testing::Bytes;
using testing::from_hex;
using testing::OnePacket;

std::vector<Bytes> fragments_of(Packet const& packet) {
  const Fragments fragments(packet);
  std::vector<Bytes> frames;
  for (std::uint32_t i = 0; i < fragments.count(); ++i) {
    Bytes frame(fragments.max_bytes());
    frame.resize(fragments.write(i, frame.data()));
    frames.push_back(std::move(frame));
  }
  return frames;
}

Bytes datagram(std::uint32_t payload_bytes, std::uint16_t flags = 0) {
  Bytes frame(kEthernetBytes + kIpv4MinBytes + payload_bytes);
  frame[12] = 0x08;
  std::uint8_t* ip = frame.data() + kEthernetBytes;
  ip[0] = 0x45;
  store_be16(ip + 2, static_cast<std::uint16_t>(kIpv4MinBytes + payload_bytes));
  store_be16(ip + 6, flags);
  ip[8] = 64;
  ip[9] = 99;
  return frame;
}

TEST(Fragments, are_those_of_scapy) {
  const auto cases = testing::read_cases("fragments.txt");
  ASSERT_GE(cases.size(), 10U);
  for (auto const& words : cases) {
    OnePacket one(from_hex(words[2]));
    one.packet().set_mtu(static_cast<std::uint16_t>(std::stoul(words[1])));
    const std::vector<Bytes> frames = fragments_of(one.packet());
    ASSERT_EQ(frames.size() + 3, words.size()) << words[0];
    EXPECT_EQ(leaves_in(one.packet()), frames.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
      EXPECT_EQ(frames[i], from_hex(words[3 + i])) << words[0] << ", fragment " << i;
    }
  }
}

TEST(Fragments, the_first_may_be_written_over_the_packet_itself) {
  for (auto const& words : testing::read_cases("fragments.txt")) {
    OnePacket one(from_hex(words[2]));
    one.packet().set_mtu(static_cast<std::uint16_t>(std::stoul(words[1])));
    const std::uint32_t bytes = Fragments(one.packet()).write(0, one.packet().frame());
    one.packet().set_extent(one.packet().offset(), bytes);
    EXPECT_EQ(one.frame(), from_hex(words[3])) << words[0];
  }
}

TEST(Fragments, a_packet_leaves_whole_unless_it_is_longer_than_its_mark) {
  OnePacket one(datagram(1000));
  EXPECT_EQ(leaves_in(one.packet()), 1U) << "not marked";
  one.packet().set_mtu(1020);
  EXPECT_EQ(leaves_in(one.packet()), 1U);
  one.packet().set_mtu(1019);
  EXPECT_EQ(leaves_in(one.packet()), 2U);
  OnePacket kept_whole(datagram(1000, 0x4000));
  kept_whole.packet().set_mtu(1020);
  EXPECT_EQ(leaves_in(kept_whole.packet()), 1U);
  kept_whole.packet().set_mtu(1019);
  EXPECT_EQ(leaves_in(kept_whole.packet()), 0U) << "DF";
  Bytes other = datagram(1000);
  other[12] = 0x86;
  OnePacket not_ipv4(other);
  not_ipv4.packet().set_mtu(100);
  EXPECT_EQ(leaves_in(not_ipv4.packet()), 1U);
}

/// Options that lie about their length, and any payload and MTU: fragments stay inside their bounds and carry every
/// octet once, in order.
TEST(Fragments, of_any_packet_carry_every_octet_once) {
  auto random = [engine = std::mt19937(11)]() mutable { return static_cast<std::uint32_t>(engine()); };
  for (int round = 0; round < 3000; ++round) {
    const std::uint32_t words = random() % 11;
    const std::uint32_t payload = 1 + random() % 1500;
    Bytes frame = datagram(words * 4 + payload);
    std::uint8_t* ip = frame.data() + kEthernetBytes;
    ip[0] = static_cast<std::uint8_t>(0x45 + words);
    for (std::uint32_t i = 0; i < words * 4 + payload; ++i) {
      ip[kIpv4MinBytes + i] = static_cast<std::uint8_t>(random());
    }
    OnePacket one(frame);
    ASSERT_TRUE(one.packet().is(kIpv4));
    const auto mtu = static_cast<std::uint16_t>(kMinMtu + random() % 1500);
    one.packet().set_mtu(mtu);
    if (leaves_in(one.packet()) == 1) {
      continue;
    }
    Bytes collected;
    const std::vector<Bytes> frames = fragments_of(one.packet());
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const std::uint8_t* header = frames[i].data() + kEthernetBytes;
      const std::uint32_t header_bytes = (header[0] & 0x0FU) * 4U;
      const std::uint32_t total = load_be16(header + 2);
      ASSERT_EQ(total + kEthernetBytes, frames[i].size());
      ASSERT_LE(total, mtu);
      ASSERT_EQ(checksum_finish(checksum_add(header, header_bytes)), 0U);
      ASSERT_EQ((load_be16(header + 6) & 0x1FFFU) * 8, collected.size());
      ASSERT_EQ((load_be16(header + 6) & 0x2000U) != 0, i + 1 < frames.size());
      collected.insert(collected.end(), frames[i].begin() + kEthernetBytes + header_bytes, frames[i].end());
    }
    ASSERT_EQ(collected, Bytes(frame.end() - payload, frame.end()));
  }
}

}  // namespace
}  // namespace catena::packet
