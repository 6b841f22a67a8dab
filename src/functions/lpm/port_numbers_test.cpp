// SPDX-License-Identifier: Apache-2.0
#include "functions/lpm/port_numbers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace catena::lpm {
namespace {

using ::testing::ElementsAre;

TEST(PortNumbers, ports_are_numbered_from_one_in_the_order_of_their_routes) {
  const std::vector<Route> routes = {{0, 1, 7, 0}, {1U << 24, 2, 3, 8}, {2U << 24, 3, 7, 8}, {3U << 24, 4, 65535, 8}};
  const PortNumbers numbers(routes);
  EXPECT_EQ(numbers.number_of(7), 1U);
  EXPECT_EQ(numbers.number_of(3), 2U);
  EXPECT_EQ(numbers.number_of(65535), 3U);
  EXPECT_EQ(numbers.number_of(0), 0U) << "no route leads there";
  EXPECT_THAT(numbers.ports(), ElementsAre(0, 7, 3, 65535));
}

TEST(PortNumbers, without_routes_there_is_no_next_hop) {
  const PortNumbers numbers(std::vector<Route>{});
  EXPECT_EQ(numbers.number_of(1), 0U);
  EXPECT_EQ(numbers.ports().size(), 1U);
}

}  // namespace
}  // namespace catena::lpm
