// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/field_mask.hpp"

#include <catena/packet/headers.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace catena::nf_process {
namespace {

using packet::fields;

constexpr packet::FieldSet kAddresses = fields(packet::kIpv4Src, packet::kIpv4Dst);

bool are_equal(packet::Layers const& a, packet::Layers const& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// Bytes that look enough like a frame to be parsed deeply, and are wrong in any place.
std::vector<std::uint8_t> random_frame(std::mt19937& random) {
  std::vector<std::uint8_t> frame(14 + random() % 700);
  for (std::uint8_t& byte : frame) {
    byte = static_cast<std::uint8_t>(random());
  }
  std::size_t at = 12;
  for (std::size_t tags = random() % 4; tags > 1 && at + 4 <= frame.size(); --tags, at += 4) {
    packet::store_be16(&frame[at], 0x8100);
  }
  if (at + 40 < frame.size()) {
    packet::store_be16(&frame[at], random() % 8 == 0 ? 0x0806 : 0x0800);
    std::uint8_t* const ip = &frame[at + 2];
    ip[0] = static_cast<std::uint8_t>(0x45U + (random() % 4 == 0 ? random() % 11 : 0));
    packet::store_be16(ip + 2, static_cast<std::uint16_t>(frame.size() - at - 2 + random() % 3 - 1));
    packet::store_be16(ip + 6, random() % 4 == 0 ? static_cast<std::uint16_t>(random() & 0x3fffU & random()) : 0);
    constexpr std::uint8_t kProtocols[] = {1, 6, 17, 50};
    ip[9] = kProtocols[random() % 4];
  }
  return frame;
}

TEST(FieldMask, whoever_has_the_bytes_that_cross_parses_what_the_whole_frame_says) {
  const FieldMask headers({kAddresses, packet::kNoFields});
  std::mt19937 random(7);
  std::uint32_t cut = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::vector<std::uint8_t> frame = random_frame(random);
    const auto length = static_cast<std::uint32_t>(frame.size());
    const packet::Layers layers = packet::parse(frame.data(), length);
    const std::uint32_t bytes = headers.bytes_to_nf(layers, length);
    ASSERT_LE(bytes, length);
    ASSERT_GE(bytes, std::min<std::uint32_t>(layers.payload, length));
    cut += bytes < length ? 1 : 0;
    for (std::uint32_t rest = bytes; rest < length; ++rest) {
      frame[rest] = static_cast<std::uint8_t>(random());
    }
    ASSERT_TRUE(are_equal(packet::parse(frame.data(), length), layers)) << i;
  }
  EXPECT_GT(cut, 50'000U);
}

TEST(FieldMask, the_frame_goes_to_who_reads_or_writes_behind_the_headers) {
  packet::Layers layers{};
  layers.flags = packet::kIpv4 | packet::kUdp | packet::kPorts;
  layers.l3 = 14;
  layers.l4 = 34;
  layers.payload = 42;
  struct Case {
    FieldUse field_use;
    std::uint32_t to_nf;
    std::uint32_t from_nf;
    bool may_move;
  };
  const Case cases[] = {
      {{kAddresses, 0}, 64, 0, false},
      {{kAddresses, fields(packet::kMetaPort)}, 64, 0, false},
      {{kAddresses, fields(packet::kIpv4Ttl)}, 64, 64, false},
      {{fields(packet::kPayload), 0}, 1000, 0, false},
      {{fields(packet::kTrailer), 0}, 1000, 0, false},
      {{kAddresses, fields(packet::kPayload)}, 1000, 1000, false},
      {{packet::kFrameFields, fields(packet::kIpv4Ttl)}, 1000, 64, false},
      {{kAddresses, fields(packet::kMetaLength)}, 1000, 1000, true},
      {{kAddresses, fields(packet::kMetaOffset)}, 1000, 1000, true},
      {{}, 1000, 1000, true},
  };
  for (Case const& it : cases) {
    const FieldMask field_mask(it.field_use);
    EXPECT_EQ(field_mask.bytes_to_nf(layers, 1000), it.to_nf) << it.field_use.reads << ' ' << it.field_use.writes;
    EXPECT_EQ(field_mask.bytes_from_nf(layers, 1000), it.from_nf) << it.field_use.reads << ' ' << it.field_use.writes;
    EXPECT_EQ(field_mask.may_move(), it.may_move);
  }
}

TEST(FieldMask, every_hint_counts_wherever_the_nf_works) {
  packet::Hints hints;
  hints.cr = fields(packet::kEthDst);
  hints.gr = fields(packet::kEthSrc);
  hints.prepare_reads = fields(packet::kIpv4Src);
  hints.complete_reads = fields(packet::kIpv4Dst);
  hints.cw = fields(packet::kIpv4Ttl);
  hints.gw = fields(packet::kIpv4Tos);
  hints.prepare_writes = fields(packet::kIpv4Id);
  hints.complete_writes = fields(packet::kIpv4Checksum);
  const FieldUse field_use = FieldUse::of(hints);
  EXPECT_EQ(field_use.reads, fields(packet::kEthDst, packet::kEthSrc, packet::kIpv4Src, packet::kIpv4Dst));
  EXPECT_EQ(field_use.writes, fields(packet::kIpv4Ttl, packet::kIpv4Tos, packet::kIpv4Id, packet::kIpv4Checksum));
}

}  // namespace
}  // namespace catena::nf_process
