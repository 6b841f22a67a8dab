// SPDX-License-Identifier: Apache-2.0
#include "remark.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/nf/testing/harness.hpp>

namespace catena::remark {
namespace {

using nf::testing::Frame;
using nf::testing::RunResult;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kMap = "map: [{from: 46, to: 10}, {from: 10, to: 0}]\nunlisted: drop\n";

/// Its checksum is computed over the whole header (RFC 1071): the oracle of both incremental updates.
Frame frame_with(std::uint8_t tos) {
  const Frame plain = nf::testing::make_frame(17, 0x0A000001, 0x0A000002, 5060, 5060, "voice");
  return nf::testing::with_header_checksum(nf::testing::with_tos(plain, tos));
}

RunResult run(std::vector<Frame> const& frames) {
  auto nf = nf::testing::make_nf(catena_nf_remark(), kMap);
  EXPECT_TRUE(nf.ok()) << nf.status();
  auto result = nf::testing::run(catena_nf_remark(), std::move(*nf), frames);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

TEST(Remark, every_tos_byte_gives_the_mapped_dscp_and_a_right_checksum) {
  std::vector<Frame> frames;
  for (std::uint32_t tos = 0; tos < 256; ++tos) {
    frames.push_back(frame_with(static_cast<std::uint8_t>(tos)));
  }
  const RunResult result = run(frames);
  for (std::uint32_t tos = 0; tos < 256; ++tos) {
    const std::uint32_t dscp = tos >> 2;
    if (dscp == 46 || dscp == 10) {
      const std::uint32_t expected = (dscp == 46 ? 10U : 0U) << 2 | (tos & 3U);
      EXPECT_EQ(result.packets[tos].frame, frame_with(static_cast<std::uint8_t>(expected)));
    } else {
      EXPECT_EQ(result.packets[tos].verdict, packet::Verdict::kDrop);
      EXPECT_EQ(result.packets[tos].frame, frames[tos]) << "a dropped packet keeps its bytes";
    }
  }
  EXPECT_EQ(result.dropped("unlisted"), 256U - 8U);
}

TEST(Remark, record_lines_tell_the_new_dscp) {
  EXPECT_THAT(run({frame_with(46 << 2), frame_with(1 << 2)}).records,
              ElementsAre(R"({"packet":0,"nf":"remark","verdict":"pass","dscp":10})",
                          R"({"packet":1,"nf":"remark","verdict":"drop","reason":"unlisted"})"));
}

TEST(Remark, a_dscp_named_twice_is_refused_with_its_position) {
  const auto nf = nf::testing::make_nf(catena_nf_remark(), "map: [{from: 1, to: 0}, {from: 1, to: 2}]");
  EXPECT_THAT(std::string(nf.status().message()), HasSubstr("test.yaml:1:32: 'from' is 1 a second time"));
}

}  // namespace
}  // namespace catena::remark
