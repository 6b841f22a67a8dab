// SPDX-License-Identifier: Apache-2.0
#include "plan/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace catena::plan {
namespace {

using ::testing::HasSubstr;

TEST(Profile, FixedSizeStaysWithinWhatAFrameCanBe) {
  EXPECT_EQ(PacketProfile::fixed(60).average_bytes(), 60);
  EXPECT_EQ(PacketProfile::fixed(0).longest_bytes(), 1U);
  EXPECT_EQ(PacketProfile::fixed(70000).longest_bytes(), 65535U);
}

TEST(Profile, HeadersFollowFromTheMix) {
  EXPECT_EQ(PacketProfile::fixed(60).header_bytes(), 14 + 20 + 8);
  // half of the packets TCP with 12 bytes of options, a tag on every fourth, a router alert (4 bytes) on every other
  const HeaderMix mix{.vlan_tags = 0.25, .ipv4_option_bytes = 2, .tcp_share = 0.5, .tcp_option_bytes = 12};
  EXPECT_EQ(PacketProfile::fixed(60, mix).header_bytes(), 14 + 1 + 22 + (20 + 12 + 8) / 2.0);
}

TEST(Profile, ImixHasItsWellKnownAverage) {
  // 7 x 60, 4 x 590 and 1 x 1514 bytes
  EXPECT_NEAR(PacketProfile::imix().average_bytes(), 4294.0 / 12, 1e-9);
  EXPECT_EQ(PacketProfile::imix().longest_bytes(), 1514U);
}

TEST(Profile, SharesOfAHistogramHaveAnyScale) {
  const std::array<FrameSize, 3> sizes{{{1000, 30}, {100, 90}, {1514, 0}}};
  const Result<PacketProfile> profile = PacketProfile::from_histogram(sizes);
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->average_bytes(), 325);
  EXPECT_EQ(profile->longest_bytes(), 1000U);
}

TEST(Profile, BadHistogramsAreErrors) {
  const auto error_of = [](std::vector<FrameSize> const& sizes) {
    const Result<PacketProfile> profile = PacketProfile::from_histogram(sizes);
    EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(profile.status().message());
  };
  EXPECT_THAT(error_of({}), HasSubstr("no frame size has a share"));
  EXPECT_THAT(error_of({{60, 0}}), HasSubstr("no frame size has a share"));
  EXPECT_THAT(error_of({{60, 1}, {0, 1}}), HasSubstr("a frame size of 0 bytes"));
  EXPECT_THAT(error_of({{65536, 1}}), HasSubstr("65536 bytes"));
  EXPECT_THAT(error_of({{60, -1}}), HasSubstr("frames of 60 bytes have a share of -1"));
  EXPECT_THAT(error_of({{60, std::numeric_limits<double>::quiet_NaN()}}), HasSubstr("frames of 60 bytes"));
  EXPECT_THAT(error_of({{60, std::numeric_limits<double>::infinity()}}), HasSubstr("frames of 60 bytes"));
}

TEST(Body, AveragesOverTheProfileAndGrows) {
  const std::array<FrameSize, 2> sizes{{{60, 1}, {542, 1}}};
  const PacketProfile profile = *PacketProfile::from_histogram(sizes);
  const Body arrived = body_of(profile, 0, 0);
  EXPECT_EQ(arrived.frame, 301);
  EXPECT_EQ(arrived.longest_frame, 542);
  EXPECT_EQ(arrived.payload, (18 + 500) / 2.0);
  // 2 + 60 and 2 + 542 bytes in steps of 16; payloads of 18 and 500
  EXPECT_EQ(arrived.staged_frame, (64 + 544) / 2.0);
  EXPECT_EQ(arrived.staged_payload, (32 + 512) / 2.0);

  const Body grown = body_of(profile, 40, 80);
  EXPECT_EQ(grown.frame, 341);
  EXPECT_EQ(grown.staged_frame, (192 + 672) / 2.0);  // 80 + 2 + 100 and 80 + 2 + 582

  const Body shrunk = body_of(profile, -100, 0);  // a frame is never shorter than nothing
  EXPECT_EQ(shrunk.frame, 442 / 2.0);
  EXPECT_EQ(shrunk.payload, 400 / 2.0);
}

}  // namespace
}  // namespace catena::plan
