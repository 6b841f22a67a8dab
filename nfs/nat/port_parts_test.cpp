// SPDX-License-Identifier: Apache-2.0
#include "port_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace catena::nat {
namespace {

std::uint32_t ports_in(PortRange const& range) { return std::uint32_t{range.last} - range.first + 1; }

class Ranges : public ::testing::TestWithParam<PortRange> {};
INSTANTIATE_TEST_SUITE_P(PortParts, Ranges,
                         ::testing::Values(PortRange{1024, 65535}, PortRange{0, 65535}, PortRange{1, 65535},
                                           PortRange{2000, 2015}, PortRange{65520, 65535}, PortRange{5000, 5016}));

TEST_P(Ranges, parts_tile_the_range_and_are_of_one_size) {
  for (std::uint32_t count = 1; count <= 16; ++count) {
    const PortParts parts(GetParam(), count);
    std::uint32_t next = GetParam().first;
    std::uint32_t smallest = 65536;
    std::uint32_t largest = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const PortRange part = parts.part(i);
      ASSERT_EQ(part.first, next);
      ASSERT_LE(part.first, part.last);
      next = std::uint32_t{part.last} + 1;
      smallest = std::min(smallest, ports_in(part));
      largest = std::max(largest, ports_in(part));
    }
    EXPECT_EQ(next, std::uint32_t{GetParam().last} + 1);
    EXPECT_LE(largest - smallest, 1U);
  }
}

TEST_P(Ranges, every_port_is_in_the_part_that_says_so_and_others_in_none) {
  for (std::uint32_t count = 1; count <= 16; ++count) {
    const PortParts parts(GetParam(), count);
    for (std::uint32_t port = 0; port <= 65535; ++port) {
      const auto part = parts.part_with(static_cast<std::uint16_t>(port));
      ASSERT_EQ(part.has_value(), port >= GetParam().first && port <= GetParam().last) << port;
      if (part) {
        ASSERT_LT(*part, count);
        ASSERT_TRUE(parts.part(*part).first <= port && port <= parts.part(*part).last) << port;
      }
    }
  }
}

}  // namespace
}  // namespace catena::nat
