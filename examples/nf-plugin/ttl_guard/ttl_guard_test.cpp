// SPDX-License-Identifier: Apache-2.0
#include "ttl_guard.hpp"

#include <catena/nf/testing/harness.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace catena::ttl_guard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TtlGuard, packets_below_the_minimum_are_dropped_and_the_others_pass) {
  auto nf = nf::testing::make_nf(catena_nf_ttl_guard(), "minimum: 10");
  ASSERT_TRUE(nf.ok()) << nf.status();
  std::vector<nf::testing::Frame> frames;
  for (const std::uint8_t ttl : std::initializer_list<std::uint8_t>{9, 10, 255, 0}) {
    frames.push_back(nf::testing::make_frame(17, 0x0A000001, 0x0A000002, 1, 2, "text", ttl));
  }
  const auto result = nf::testing::run(catena_nf_ttl_guard(), *std::move(nf), frames);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->dropped("ttl_too_low"), 2U);
  EXPECT_THAT(result->records,
              ElementsAre(R"({"packet":0,"nf":"ttl_guard","verdict":"drop","reason":"ttl_too_low","ttl":9})",
                          R"({"packet":3,"nf":"ttl_guard","verdict":"drop","reason":"ttl_too_low","ttl":0})"));
}

TEST(TtlGuard, a_minimum_above_255_is_refused_with_its_position) {
  const auto nf = nf::testing::make_nf(catena_nf_ttl_guard(), "minimum: 256");
  EXPECT_THAT(std::string(nf.status().message()), HasSubstr("test.yaml:1:10: 'minimum' is '256'"));
}

}  // namespace
}  // namespace catena::ttl_guard
