// SPDX-License-Identifier: Apache-2.0
#include "port_pool.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace catena::nat {
namespace {

/// What PortPool::take() promises, by inspecting every port.
std::optional<std::uint16_t> slow_take(std::set<std::uint32_t> const& free, std::uint16_t preferred) {
  for (const std::uint32_t odd : {0U, 1U}) {
    for (std::uint32_t step = 0; step < 65536; step += 2) {
      const std::uint32_t port = ((preferred ^ odd) + step) % 65536;
      if (free.contains(port)) {
        return static_cast<std::uint16_t>(port);
      }
    }
  }
  return std::nullopt;
}

TEST(PortPool, a_free_port_is_given_out_as_asked) {
  PortPool pool(1024, 65535);
  EXPECT_EQ(pool.take(1024), 1024);
  EXPECT_EQ(pool.take(65535), 65535);
  EXPECT_EQ(pool.take(40001), 40001);
  EXPECT_EQ(pool.free_count(), 64512U - 3);
}

TEST(PortPool, a_port_outside_the_range_is_replaced_by_the_next_of_its_parity_in_it) {
  PortPool pool(1024, 2000);
  EXPECT_EQ(pool.take(53), 1025);
  EXPECT_EQ(pool.take(0), 1024);
  EXPECT_EQ(pool.take(60000), 1026) << "around the end";
}

TEST(PortPool, the_other_parity_serves_when_one_is_used_up) {
  PortPool pool(10, 12);
  EXPECT_EQ(pool.take(11), 11);
  EXPECT_EQ(pool.take(11), 10);
  EXPECT_EQ(pool.take(11), 12);
  EXPECT_EQ(pool.take(11), std::nullopt);
}

TEST(PortPool, a_range_of_one_port_has_one) {
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{0, 1, 65534, 65535}) {
    PortPool pool(port, port);
    EXPECT_EQ(pool.take(30000), port);
    EXPECT_EQ(pool.take(port), std::nullopt);
    pool.give_back(port);
    EXPECT_EQ(pool.take(0), port);
  }
}

TEST(PortPool, every_port_is_given_out_once) {
  PortPool pool(0, 65535);
  std::set<std::uint16_t> seen;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto port = pool.take(4711);
    ASSERT_TRUE(port.has_value());
    ASSERT_TRUE(seen.insert(*port).second);
  }
  EXPECT_EQ(pool.take(4711), std::nullopt);
  EXPECT_EQ(pool.free_count(), 0U);
}

TEST(PortPool, random_takes_and_returns_are_as_a_search_of_every_port_says) {
  std::mt19937 engine(1);
  PortPool pool(1000, 1500);
  std::set<std::uint32_t> free;
  for (std::uint32_t port = 1000; port <= 1500; ++port) {
    free.insert(port);
  }
  std::vector<std::uint16_t> taken;
  for (int i = 0; i < 4000; ++i) {
    if (!taken.empty() && engine() % 100 < 45) {
      std::swap(taken[engine() % taken.size()], taken.back());
      pool.give_back(taken.back());
      free.insert(taken.back());
      taken.pop_back();
      continue;
    }
    const auto preferred = static_cast<std::uint16_t>(engine() % 4 == 0 ? engine() : 1000 + engine() % 520);
    const auto expected = slow_take(free, preferred);
    ASSERT_EQ(pool.take(preferred), expected);
    if (expected) {
      free.erase(*expected);
      taken.push_back(*expected);
    }
  }
}

}  // namespace
}  // namespace catena::nat
